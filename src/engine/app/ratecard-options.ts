// Generated from src/settings.ts by `npm run generate`. Do not edit.
import type { Observe } from '../base/access-record.ts'
import type { HandlerMap } from '../handler.ts'
import type { ServiceDefinition } from '../service-definition.ts'
import type { OpenScheme } from '../x402/scheme.ts'
import type { CatalogPlace } from './catalog-thread.ts'
import type { FacilitatorOptions, Logger, RuntimeOptions, Secrets } from './option-values.ts'

/** What {@link createRatecard} is given. */
export interface RatecardOptions {
  /** Public origin of the service, without a path. All absolute addresses start with it. */
  readonly baseUrl: string
  /**
   * Path of the catalog file; in a program also `{ text }`, whose files are read from the working
   * directory.
   */
  readonly catalog: CatalogPlace
  /**
   * Folder for data on this machine: the ledger unless it is in Redis, and kept revisions of the catalog.
   * Never on a network disk. Default: `.ratecard`.
   */
  readonly dataDir?: string | undefined
  /**
   * Whether `X-Forwarded-For` has the address of the caller: only behind a proxy of yours that overwrites
   * it. Default: `false`.
   */
  readonly trustProxy?: boolean | undefined
  /**
   * Where several machines record payments: `redis://…` or `rediss://…`, shared by all with the same payee.
   * Refused without `appendonly yes` and `maxmemory-policy noeviction`. Default: LMDB in the data folder.
   */
  readonly ledger?: string | undefined
  /** Redis of the cache. Default: the memory of this process; for the command: `REDIS_URL`. */
  readonly cache?: string | undefined
  /**
   * Whether to use a Redis that does not allow `CONFIG GET`. You are then responsible for its settings.
   * Default: `false`.
   */
  readonly ledgerUnsafe?: boolean | undefined
  /**
   * Replicas of Redis that must have a change before it counts as stored (`WAIT`). When fewer answer, sales
   * stop. Default: `0`.
   */
  readonly ledgerReplicas?: number | undefined
  /**
   * Path below which an application mounts the service, such as `/shop`: all its addresses have it after
   * the origin. Default: none: the root of its host.
   */
  readonly basePath?: string | undefined
  /** Handlers by the name they have in the catalog. Routes with `upstream` need none. Default: none. */
  readonly handlers?: HandlerMap | undefined
  /**
   * What `defineService` returns: its handlers, to which those of `handlers` are added, and its stores. It
   * reads its variables from `secrets`. Default: none.
   */
  readonly service?: ServiceDefinition<unknown> | undefined
  /**
   * Credentials that the catalog refers to by name, and the variables of `service`: a map such as
   * `process.env`, or a function. Default: none; for the command: the environment.
   */
  readonly secrets?: Secrets | undefined
  /** Takes warnings and errors. Default: `console`. */
  readonly logger?: Logger | undefined
  /** Called once for each request that has been answered: for an access log or metrics. Default: none. */
  readonly onRequest?: Observe | undefined
  /** Origins of MCP servers by their name in the catalog. Default: `/mcp/NAME` below the public origin. */
  readonly mcpUrls?: Readonly<Record<string, string>> | undefined
  /** Sources of time, randomness and HTTP requests; for tests. Default: those of the machine. */
  readonly runtime?: Partial<RuntimeOptions> | undefined
  /** How buyers pay. A catalog without paid routes needs none. */
  readonly payments?: PaymentOptions | undefined
}

/** The protocols that buyers pay with, as far as the catalog offers them. */
export interface PaymentOptions {
  /**
   * Ed25519 keys of signed receipts (64 hexadecimal digits: `openssl rand -hex 32`), never that of an
   * account. The first signs, all are published: `current,previous` once you have another. Default: none:
   * no receipts are signed.
   */
  readonly receiptKeys?: readonly string[] | undefined
  /**
   * Whether to sell for the worthless money of test networks. Logs, pages and 402 responses say so; a
   * sandbox needs no permission. Default: `false`.
   */
  readonly allowTestNetworks?: boolean | undefined
  /** Payments with x402. */
  readonly x402?: X402Options | undefined
  /** Payments with MPP. */
  readonly mpp?: MppOptions | undefined
}

/**
 * x402 v2, scheme `exact`. A network is offered when it can settle: either `facilitators` are given, or an
 * RPC URL for it and `signerKeys`.
 */
export interface X402Options {
  /**
   * Addresses that receive the money by x402: one for all EVM networks (`0x…`), one for Solana (base58), or
   * both; in a variable separated by a comma. Their keys are not needed here. Default: `payments.pay_to` of
   * the catalog.
   */
  readonly payTo?: string | readonly string[] | undefined
  /**
   * Private keys (64 hexadecimal digits) of the accounts that send settlements and pay their gas; in a
   * variable separated by commas. They hold gas money and nothing else. Default: none.
   */
  readonly signerKeys?: readonly string[] | undefined
  /**
   * Key pairs of the accounts that pay the fees of settlements on Solana: 64 bytes in base58, or as the
   * JSON array that `solana-keygen` writes; in a variable separated by commas. They hold SOL for fees and
   * nothing else. Offers name the first; keep an earlier one behind it for two minutes. Default: none.
   */
  readonly feePayerKeys?: readonly string[] | undefined
  /**
   * Private keys that sign claims and refunds of channels (scheme `batch-settlement`); in a variable
   * separated by commas. They need no money. Channels name the address of the first; keep earlier keys
   * behind it until their channels are empty. Default: none: no channels are offered.
   */
  readonly channelKeys?: readonly string[] | undefined
  /**
   * JSON-RPC endpoint of each network of the catalog: `{ base: …, solana: … }`, or a variable of each by
   * its chain id; on Solana `RPC_URL_SOLANA` and `RPC_URL_SOLANA_DEVNET`. Default: none.
   */
  readonly rpcUrls?: Readonly<Record<string, string>> | undefined
  /** Services that settle for you, in order of preference; no key is needed then. Default: none. */
  readonly facilitators?: readonly FacilitatorOptions[] | undefined
  /**
   * Schemes of x402 of your own, offered after `exact`. See `ratecard/scheme`, which is unstable. Default:
   * none.
   */
  readonly schemes?: readonly OpenScheme[] | undefined
}

/** MPP with the payment method `tempo`; offered when all of them are given. */
export interface MppOptions {
  /** Address that receives MPP payments. Default: none: MPP is not offered. */
  readonly recipient?: string | undefined
  /**
   * Texts of at least 32 bytes that sign challenges (`openssl rand -hex 32`). The first signs, all are
   * accepted: `current,previous` while you rotate it. Default: none.
   */
  readonly secretKeys?: readonly string[] | undefined
  /**
   * JSON-RPC endpoints by network: `tempo`, `tempo-moderato`, or `eip155:` and the chain id. Default: none.
   */
  readonly rpcUrls?: Readonly<Record<string, string>> | undefined
}

/** The names of all options, by the path of the object that holds them. */
export const OPTION_NAMES: Readonly<Record<string, readonly string[]>> = {
  '': [
    'baseUrl',
    'catalog',
    'dataDir',
    'trustProxy',
    'ledger',
    'cache',
    'ledgerUnsafe',
    'ledgerReplicas',
    'basePath',
    'handlers',
    'service',
    'secrets',
    'logger',
    'onRequest',
    'mcpUrls',
    'runtime',
    'payments',
  ],
  payments: ['receiptKeys', 'allowTestNetworks', 'x402', 'mpp'],
  'payments.x402': [
    'payTo',
    'signerKeys',
    'feePayerKeys',
    'channelKeys',
    'rpcUrls',
    'facilitators',
    'schemes',
  ],
  'payments.mpp': ['recipient', 'secretKeys', 'rpcUrls'],
}
