/**
 * The package `ratecard`: serve a catalog from a program of your own. Handlers are written against `ratecard/handler`,
 * tests against `ratecard/testing`, schemes of x402 against `ratecard/scheme`.
 */
export type { AccessRecord, Observe } from './base/access-record.ts'
export { CatalogError, type Issue, type Position } from './catalog/issue.ts'
export type { CatalogPlace } from './app/catalog-thread.ts'
export type { Reload } from './app/catalog-reload.ts'
export { Failure, InvalidParameter, type ErrorCode, type FailureOptions } from './base/errors.ts'
export type { HandlerMap } from './handler.ts'
export { LedgerError } from './base/errors.ts'
export { OptionError } from './app/options.ts'
export type { FacilitatorOptions, Logger, RuntimeOptions, Secrets } from './app/option-values.ts'
export type { MppOptions, PaymentOptions, RatecardOptions, X402Options } from './app/ratecard-options.ts'
export { createRatecard } from './app/create-ratecard.ts'
export type { Ratecard } from './app/ratecard.ts'
export {
  defineService,
  type CommandLine,
  type CommandOption,
  type Flags,
  type HandlerContext,
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
