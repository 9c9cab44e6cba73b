import { isAddress, sameAddress } from '../base/address.ts'
import { findNetwork } from '../base/networks.ts'
import { Chain } from '../chains/evm/chain.ts'
import { LogScanner, RpcUnavailableError } from '../chains/evm/log-scanner.ts'
import { MppSource } from '../mpp/memo-source.ts'
import type { ReconcileSource } from '../payment/reconcile-source.ts'
import { showsRefund } from '../refunds/refund-proof.ts'
import { X402Source } from '../x402/exact-evm/authorization-source.ts'
import type { ChainHistory, HistorySettings } from './chain-history.ts'
import type { ReceivingAccount } from './receiving-accounts.ts'

interface EvmHistorySettings extends HistorySettings {
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
}

/** The logs of an EVM chain since a time. Throws `RpcUnavailableError`. */
export async function openEvmHistory(
  { rpcUrls, since, caller, now, sleep }: EvmHistorySettings,
  account: ReceivingAccount,
): Promise<ChainHistory> {
  const { network } = account
  const payees = [...account.payees].filter(isAddress)
  const chainId = chainIdOf(network)
  const url = rpcUrls[chainId]
  if (url === undefined) throw new RpcUnavailableError(`RPC_URL_${chainId} is not set`)
  // A search without an address would find all transfers.
  if (payees.length === 0) throw new RpcUnavailableError('no address of a payee is known')
  const scanner = await LogScanner.open({ chain: new Chain(url, caller), sleep }, chainId)
  if (isBehind(scanner, network, now()))
    throw new RpcUnavailableError(
      `its node is behind: its newest block is of ${new Date(scanner.headTime).toISOString()}`,
    )
  const source = openSource(account, scanner)
  const span = { from: await scanner.blockAt(since), to: scanner.head }
  return {
    span,
    async *incoming() {
      for await (const { span: part, incoming } of source.incoming(payees, span))
        yield { incoming, read: `${part.to - span.from + 1n} of ${span.to - span.from + 1n} blocks` }
    },
    status: (record) => source.status(record),
    showsRefund: async (record, transaction) => {
      const receipt = await scanner.receipt(transaction)
      return receipt !== null && showsRefund(record, receipt.logs)
    },
  }
}

/** Not a number where a network is no EVM network. */
export function chainIdOf(network: string): number {
  return Number(/^eip155:(\d+)$/.exec(network)?.[1])
}

/** Every network has a block each few seconds; a test network may sleep. */
const BEHIND_MS = 600_000

function isBehind({ headTime }: LogScanner, network: string, now: number): boolean {
  return findNetwork(network)?.testnet !== true && headTime < now - BEHIND_MS
}

function openSource(
  { protocol, network: id, asset, keys }: ReceivingAccount,
  scanner: LogScanner,
): ReconcileSource {
  if (protocol === 'mpp' && isAddress(asset)) return new MppSource(scanner, asset, keys)
  const network = findNetwork(id)
  if (protocol !== 'x402' || network === undefined || !sameAddress(network.token.address, asset))
    throw new RpcUnavailableError(`this version does not know payments by ${protocol} in ${asset}`)
  return new X402Source(scanner, network)
}
