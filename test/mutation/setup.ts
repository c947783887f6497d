import { configureGlobal } from "fast-check";

// A failing property has noticed the change. Its smallest counterexample is not needed.
configureGlobal({ endOnFailure: true });
