import { configureGlobal } from "fast-check";

// A property that fails has noticed: nobody reads its smallest counterexample.
configureGlobal({ endOnFailure: true });
