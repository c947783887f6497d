export { type RequestScopeOptions, requestScope } from "./request-scope.ts";
export { type WriteOnceOptions, writeOnce } from "./write-once.ts";
