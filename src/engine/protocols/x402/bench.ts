import type { Address } from '../../address.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Limits, Network } from '../../networks.ts'
import type { Chain } from '../../chains/evm/rpc.ts'
import { FeeOracle } from '../../chains/evm/fees.ts'
import { GasLosses } from './gas-losses.ts'
import { PayerLimits } from './payer-limits.ts'
import { openAccount, Signer, SignerPool } from '../../chains/evm/signer.ts'
import { balanceOf } from './simulation.ts'

/** What it takes to see what became of a payment on one network. */
export interface Lookout {
  readonly networkId: string
  readonly chain: Chain
  readonly limits: Limits
}

/** What it takes to move money on one network with our own hands. */
export interface Bench extends Lookout {
  readonly token: Address
  readonly signers: SignerPool
  readonly fees: FeeOracle
  readonly payers: PayerLimits
  readonly losses: GasLosses
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}

export interface BenchSettings {
  readonly network: Network
  readonly chain: Chain
  readonly signerKeys: readonly `0x${string}`[]
  readonly ledger: Ledger
  /** Name of this process in leases. */
  readonly owner: string
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/** What stays while limits change. */
export function openBench({ signerKeys, ...settings }: BenchSettings): Omit<Bench, 'limits'> {
  const { network, chain, now, sleep } = settings
  const token = network.token.address
  const fees = new FeeOracle(chain, now)
  // A key that is listed twice is one account: two queues would use its nonces twice.
  const accounts = new Map(signerKeys.map(openAccount).map((account) => [account.address, account]))
  return {
    networkId: network.id,
    token,
    chain,
    fees,
    signers: new SignerPool(
      [...accounts.values()].map((account) => new Signer({ ...settings, account, fees })),
    ),
    payers: new PayerLimits((payer) => balanceOf({ chain, token }, payer), { now, sleep }),
    losses: new GasLosses(settings),
    now,
    sleep,
  }
}
