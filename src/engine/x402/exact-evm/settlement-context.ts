import type { Chain } from '../../chains/evm/chain.ts'
import { FeeOracle } from '../../chains/evm/fees.ts'
import { Multicall } from '../../chains/evm/multicall.ts'
import type { SignerPool } from '../../chains/evm/signer-pool.ts'
import { SimulationQueue } from '../../chains/evm/simulation-queue.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Network } from '../../base/networks.ts'
import type { Every } from '../../base/every.ts'
import type { Clock } from '../../base/poll.ts'
import type { Refusal } from '../../base/errors.ts'
import { GasBudget } from '../../chains/evm/gas-budget.ts'
import { GasLosses } from '../../chains/evm/gas-losses.ts'
import type { ReceiptReader } from './failed-transaction.ts'
import { PayerLimits } from './payer-limits.ts'
import { allowanceOf, balanceOf } from '../../chains/evm/eip3009/token-state.ts'
import { PERMIT2 } from '../../base/permit2.ts'

/** What it takes to settle on one network with signers of this process. */
export interface SettlementContext extends ReceiptReader, Clock {
  readonly ledger: Ledger
  readonly simulations: SimulationQueue<Refusal | undefined>
  readonly signers: SignerPool
  readonly fees: FeeOracle
  /** As `payers`, within what each has allowed Permit2 to move. */
  readonly allowances: PayerLimits
}

interface ContextSettings extends Clock {
  readonly network: Network
  readonly chain: Chain
  readonly signerKeys: readonly `0x${string}`[]
  readonly ledger: Ledger
  /** Name of this process in leases. */
  readonly owner: string
  readonly every: Every
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/**
 * Opens the parts that stay when limits change. Loads viem, which is most of the process’s memory and start-up time.
 */
export async function openContext({
  signerKeys,
  ...settings
}: ContextSettings): Promise<Omit<SettlementContext, 'limits'>> {
  const [{ openAccount }, { Signer }, { SignerPool }] = await Promise.all([
    import('../../chains/evm/local-account.ts'),
    import('../../chains/evm/signer.ts'),
    import('../../chains/evm/signer-pool.ts'),
  ])
  const { network, chain, ledger, now, sleep } = settings
  const multicall = new Multicall(chain, settings)
  void multicall.look()
  const token = network.token.address
  const fees = new FeeOracle(chain, now)
  const losses = new GasLosses(settings)
  // A key that is listed twice is one account: two queues would use its nonces twice.
  const accounts = new Map(signerKeys.map(openAccount).map((account) => [account.address, account]))
  return {
    networkId: network.id,
    token,
    chain,
    ledger,
    multicall,
    simulations: new SimulationQueue(multicall, settings),
    fees,
    signers: new SignerPool(
      Array.from(accounts.values(), (account) => new Signer({ ...settings, account, fees, multicall })),
    ),
    payers: new PayerLimits((payer) => balanceOf({ chain, token }, payer), { now, sleep }),
    allowances: new PayerLimits((payer) => allowanceOf({ chain, token }, payer, PERMIT2), { now, sleep }),
    losses,
    budget: new GasBudget({ ...settings, losses }),
    now,
    sleep,
  }
}
