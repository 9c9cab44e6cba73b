/** The door of the framework: everything outside the engine imports from here. */
export type { Access, Observe } from './access.ts'
export { hasSoundChecksum, isAddress, sameAddress, toChecksum, type Address } from './address.ts'
export { Cache, createMemoryCache, type CacheStore } from './cache/cache.ts'
export { openRedisCache } from './cache/redis.ts'
export {
  fillPath,
  variablesOf,
  type Catalog,
  type Operation,
  type OutsideSource,
  type Parameter,
  type Payments,
  type Route,
} from './catalog/catalog.ts'
export { generateTypes } from './catalog/generate-types.ts'
export { CatalogError, formatIssue, hasErrors, type Issue } from './catalog/issue.ts'
export { compileText, loadCatalog, type Loaded } from './catalog/load.ts'
export { operationId } from './catalog/check-context.ts'
export { catalogSchema } from './catalog/schema.ts'
export { documentNames } from './documents/all.ts'
export { openapiParameter } from './documents/parameters.ts'
export { listedServers } from './documents/servers.ts'
export { renderServerJson } from './documents/servers.ts'
export { formatDuration, parseDuration } from './duration.ts'
export { ERRORS, Failure, InvalidParameter, type ErrorCode } from './errors.ts'
export {
  staleWarning,
  type Answer,
  type Arguments,
  type ConfigurableHandler,
  type Context,
  type EnvelopedAnswer,
  type Handler,
  type HandlerMap,
  type Handlers,
  type HandlerWithPreview,
  type Keeping,
  type KeptValue,
  type Part,
  type PaymentFacts,
  type Source,
  type StoringHandler,
  type VerbatimAnswer,
  type Warning,
} from './handler.ts'
export type { OperatorRoute } from './http/app.ts'
export { closeServer, createHttpServer, listen } from './http/server.ts'
export { createService, type Service, type ServiceWorld } from './http/service.ts'
export { createRevision, tryOperations, type Revision, type Trial } from './http/revision.ts'
export type { AllFigures } from './http/status.ts'
export { canonicalJson, digestJson, isJsonObject, type Json, type JsonObject } from './json.ts'
export { measurePrune, prune } from './ledger/clean-up.ts'
export type { Ledger } from './ledger/ledger.ts'
export { chargeStatus, isRefundDue, LedgerError } from './ledger/payment-lifecycle.ts'
export type { PaymentRecord, Receipt, Refund, State } from './ledger/payment-record.ts'
export { openLmdbLedger } from './ledger/lmdb.ts'
export { openRedisLedger, type RedisLedgerSettings } from './ledger/redis.ts'
export { figureRows, UsageStore, type FigureRow } from './usage/usage.ts'
export { formatPrice, formatShort, parsePrice, toMicros, type Micros } from './money.ts'
export { findAsset, findNetwork, NETWORKS, type Network } from './networks.ts'
export { once } from './once.ts'
export { isLoopback } from './origin.ts'
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
export type { Caller } from './chains/evm/rpc.ts'
export { openMppNetworks, type MppNetworks } from './protocols/mpp/mpp.ts'
export type { Protocol } from './protocols/protocol.ts'
export type { FacilitatorAccess } from './protocols/x402/facilitator-client.ts'
export { refundPayment, type RefundResult } from './protocols/refund.ts'
export { reconcile } from './protocols/reconcile/reconcile.ts'
export type { Checked, Difference, Field, Statement } from './protocols/reconcile/compare.ts'
export type { OnchainPayment, OnchainStatus } from './protocols/reconcile/compare.ts'
export { askChainId, checkNetwork, type NetworkCheck } from './protocols/x402/network-check.ts'
export { FEW, formatCoin } from './chains/evm/fees.ts'
export { readPaymentKey } from './protocols/x402/x402.ts'
export { HEADER_TARGET } from './protocols/x402/challenge.ts'
export { checkHeaderBudget, measureHeaders } from './protocols/x402/challenge.ts'
export { addressOfKey } from './protocols/x402/eip3009.ts'
export { readRedisAddress, type RedisAddress } from './redis-address.ts'
export { openX402Networks, type X402Networks } from './protocols/x402/networks.ts'
export { createX402 } from './protocols/x402/x402.ts'
