import type { Observe } from '../base/access-record.ts'
import type { RpcTransport } from '../base/runtime.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Mark } from '../catalog/load-catalog.ts'
import type { ServiceSettings } from '../http/service.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { OnFacilitatorOutcome } from '../x402/facilitators/observed-facilitator.ts'
import type { KeptRevisions } from './kept-revisions.ts'
import type { OptionNames } from './option-names.ts'
import type { PaymentConfig } from './options.ts'
import type { RatecardOptions } from './ratecard-options.ts'

/** What a program adds to the catalog that it serves, as `ratecard serve` and `ratecard/testing` do. */
export interface Host {
  /** What messages call the settings. */
  readonly names: OptionNames
  /** The operations of the process that this one replaces, by name. */
  readonly served?: readonly string[] | undefined
  /** Called once the catalog is read, before anything is opened: options that follow from it. */
  readonly prepare?: (catalog: Catalog) => Promise<Prepared>
  /** Where revisions are kept, so that a restart with a broken file serves the last one. */
  readonly kept?: KeptRevisions | undefined
  /** Called after each attempt to read the catalog, with the files that were read. */
  readonly read?: (files: ReadonlyMap<string, Mark>) => void
  /** Called once the stores are open, before a request is answered: what counts and shows what happens. */
  readonly instrument?: (stores: OpenStores) => Promise<Instruments>
}

/** What an instrument may read. */
export interface OpenStores {
  readonly ledger: Ledger
  /** The file of a ledger on this machine. */
  readonly ledgerFile: string | undefined
  readonly payments: PaymentConfig
}

/** Options that follow from the catalog. */
export interface Prepared {
  readonly options?: Partial<RatecardOptions>
  /** Changes each revision before it is served. */
  readonly adapt?: (catalog: Catalog) => Catalog
  /** Folder of the ledger. Default: `ledger` in the data folder. */
  readonly ledgerDirectory?: string
}

/** What a host adds to a service for its operator. */
export interface Instruments extends Pick<
  ServiceSettings,
  'figures' | 'sandbox' | 'bound' | 'settle' | 'operatorRoute'
> {
  /** Besides `onRequest`. */
  readonly observe: Observe | undefined
  /** Sends the calls of nodes in place of `runtime`. */
  readonly caller: RpcTransport | undefined
  /** Called for each answer of a facilitator about a payment. */
  readonly noteFacilitator: OnFacilitatorOutcome | undefined
  /** Called at the end, when nothing changes any more and the stores are still open. */
  readonly close?: () => Promise<void>
}

/** A host that looks at nothing. */
export const NO_INSTRUMENTS: Instruments = {
  figures: () => new Map(),
  sandbox: false,
  bound: () => undefined,
  settle: undefined,
  operatorRoute: undefined,
  observe: undefined,
  caller: undefined,
  noteFacilitator: undefined,
}
