import type { Deadline, RpcTransport } from '../base/runtime.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { NetworkHealth } from '../payment/network-health.ts'
import type { SettingNames } from '../payment/setting-names.ts'
import type { X402Terms } from './scheme.ts'

/** `changed`: other networks are offered from now on. */
export type Inspection = 'as before' | 'changed'

type Look = (x402: X402Terms, report: (line: string) => void) => Promise<Inspection>

/** The networks of one family on which payments are accepted, each with its settlement. */
export interface OfferedNetworks<Network, Settleable> {
  /** Networks of the catalog that can be offered now. */
  of(x402: X402Terms): readonly Settleable[]
  /** Every network that can be settled on here, whether the catalog offers it or not. */
  reachable(x402: X402Terms): readonly Settleable[]
  /** Networks of the catalog that cannot be offered, and the settings that are missing for each. */
  closed(x402: X402Terms): readonly { readonly network: Network; readonly missing: readonly string[] }[]
  /** What an operator should know of networks that are offered, one sentence each. */
  cautions(x402: X402Terms): readonly string[]
  /** Looks at the networks we settle on ourselves: at whom and what is paid, and at the money for fees. */
  readonly inspect: Look
  /** Asks the facilitators what they settle, after the start: it may take seconds. */
  readonly survey: Look
  /** Health of the networks that accounts of this process settle on, once they were used or inspected. */
  health(): Promise<readonly NetworkHealth[]>
}

/** What the networks of every family are opened with. */
export interface NetworkAccess {
  readonly names: SettingNames
  readonly ledger: Ledger
  /** To the nodes. */
  readonly caller: RpcTransport
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly deadline: Deadline
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}
