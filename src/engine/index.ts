/** The door of the framework: everything outside the engine imports from here. */
export type { Catalog, Operation as CataloguedOperation, Parameter, Route } from './catalog/catalog.ts'
export { CatalogError, formatIssue, type Issue } from './catalog/issue.ts'
export { loadCatalog, type Loaded } from './catalog/load.ts'
export { catalogSchema } from './catalog/schema.ts'
export { documentNames } from './documents/all.ts'
export { Failure, InvalidParameter, ERRORS, type ErrorCode } from './errors.ts'
export type {
  Answer,
  Context,
  EnvelopedAnswer,
  Handler,
  HandlerMap,
  Handlers,
  HandlerWithPreview,
  PaymentFacts,
  Source,
  VerbatimAnswer,
  Warning,
} from './handler.ts'
export { canonicalJson, digestJson, isJsonObject, type Json, type JsonObject } from './json.ts'
