/** What the command and the sandbox use of the engine. Programs of others import from `index.ts`, handlers from `handler.ts`. */
export type { Access, Observe } from './access.ts'
export { isAddress, sameAddress } from './address.ts'
export { Cache, createMemoryCache } from './cache/cache.ts'
export {
  examplePath,
  fillPath,
  METHODS,
  routeKey,
  variablesOf,
  type Catalog,
  type Method,
  type Operation,
  type OutsideSource,
  type Parameter,
  type Route,
} from './catalog/catalog.ts'
export { ruleNote, spellPrice } from './catalog/price-text.ts'
export { computePrice, type Price, type PriceRule, readPrice, usageOf } from './catalog/price.ts'
export { generateTypes } from './catalog/generate-types.ts'
export { CatalogError, formatIssue, type Issue } from './catalog/issue.ts'
export {
  ABSENT,
  compileText,
  loadCatalog,
  type Loaded,
  type Mark,
  markNow,
  markOf,
  readerIn,
} from './catalog/load.ts'
export { operationId } from './catalog/check-context.ts'
export { fitsParameter, patternError } from './catalog/check-parameters.ts'
export { catalogSchema } from './catalog/schema.ts'
export { documentNames } from './documents/all.ts'
export { openapiParameter } from './documents/parameters.ts'
export { findBatch, MULTICALL3 } from './chains/evm/batch.ts'
export { SANDBOX_WALLET } from './documents/payment-page.ts'
export { listedServers } from './documents/servers.ts'
export { renderServerJson } from './documents/servers.ts'
export { formatDuration, parseDuration } from './duration.ts'
export { ERRORS, Failure, InvalidParameter, type ErrorCode } from './errors.ts'
export { type Release, tryLock } from './file-lock.ts'
export { type Answer, type Context, type EnvelopedAnswer, type HandlerMap } from './handler.ts'
export type { OperatorRoute } from './http/app.ts'
export { DELIVERED_MS } from './http/reply.ts'
export { attach, createHttpServer, listen } from './http/app.ts'
export { closeServer, handOver } from './http/shutdown.ts'
export type { Service } from './http/service.ts'
export {
  createRevision,
  tryOperations,
  type Revision,
  type RevisionSettings,
  type Trial,
} from './http/revision.ts'
export type { AllFigures } from './http/status.ts'
export {
  asciiJson,
  compact,
  digestJson,
  isJsonObject,
  parseJson,
  type Json,
  type JsonObject,
} from './json.ts'
export { findRefundsDue, measurePrune, prune } from './ledger/clean-up.ts'
export type { Ledger } from './ledger/ledger.ts'
export { LedgerError, LedgerLostError } from './errors.ts'
export { checkStore } from './ledger/lmdb-check.ts'
export { chargeStatus, isRefundDue, refundStateOf } from './ledger/payment-lifecycle.ts'
export type { PaymentRecord, Receipt, Refund, State } from './ledger/payment-record.ts'
export { figureRows, UsageStore, type FigureRow } from './usage/usage.ts'
export { formatPrice, formatShort, parsePrice, toMicros, type Micros } from './money.ts'
export { findAsset, findNetwork, type Network } from './networks.ts'
export { isLoopback } from './origin.ts'
export {
  type CommandLine,
  type Flags,
  type ServiceContext,
  type ServiceDefinition,
  type SourceFigures,
  type StandIns,
  type Terminal,
} from './service-definition.ts'
export type { Protocol, SettingNames } from './protocols/protocol.ts'
export { refundPayment, type RefundResult } from './protocols/refund.ts'
export { reconcile } from './protocols/reconcile/reconcile.ts'
export type { Checked, Difference, Statement, Sum } from './protocols/reconcile/compare.ts'
export type { OnchainPayment, OnchainStatus } from './protocols/reconcile/compare.ts'
export { askChainId, checkNetwork, type NetworkCheck } from './protocols/x402/network-check.ts'
export { FEW, formatCoin } from './chains/evm/account.ts'
export { readPaymentKey } from './protocols/x402/x402.ts'
export { HEADER_TARGET } from './protocols/x402/challenge.ts'
export { checkHeaderBudget, measureHeaders } from './protocols/x402/challenge.ts'
export { addressOfKey, TRANSFER_TYPES } from './protocols/x402/payload.ts'
export { readRedisAddress } from './redis-address.ts'
export type { X402Networks } from './protocols/x402/networks.ts'
export {
  openCache,
  openLedger,
  openNetworks,
  protocolsOf,
  type AllNetworks,
  type PaymentConfig,
} from './compose.ts'
export { type CatalogReader, loadServed, type LoadedHandlers, readAtStart } from './catalog-thread.ts'
export { type RpcTransport, systemRuntime } from './runtime.ts'
export { invalidConfig, missingConfig } from './payment-config.ts'
export { OptionError } from './options.ts'
export { openRatecard } from './ratecard.ts'
export { namesOf } from './reload.ts'
