/**
 * The package `ratecard`: serve a catalog from a program of your own. Handlers are written against `ratecard/handler`,
 * tests against `ratecard/testing`, payment protocols against `ratecard/protocol`.
 */
export type { Access, Observe } from './access.ts'
export { CatalogError, type Issue, type Position } from './catalog/issue.ts'
export type { CatalogPlace } from './catalog-thread.ts'
export type { Reload } from './reload.ts'
export { Failure, InvalidParameter, type ErrorCode, type FailureOptions } from './errors.ts'
export type { HandlerMap } from './handler.ts'
export { LedgerError } from './errors.ts'
export {
  OptionError,
  type FacilitatorOptions,
  type Logger,
  type MppOptions,
  type PaymentOptions,
  type RatecardOptions,
  type RuntimeOptions,
  type Secrets,
  type X402Options,
} from './options.ts'
export { createRatecard, type Ratecard } from './ratecard.ts'
export {
  defineService,
  type CommandLine,
  type CommandOption,
  type Flags,
  type ServiceCall,
  type ServiceCommand,
  type ServiceContext,
  type ServiceDefinition,
  type ServiceStores,
  type Serving,
  type SourceFigures,
  type StandIns,
  type Terminal,
  type Variables,
} from './service-definition.ts'
