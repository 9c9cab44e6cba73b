import { svmRpcVariable, type SvmNetwork } from '../base/networks.ts'
import { RpcUnavailableError } from '../chains/evm/log-scanner.ts'
import { SvmChain } from '../chains/svm/svm-chain.ts'
import { svmRefunderIn, svmRefundTermsOf } from '../refunds/svm-refund-proof.ts'
import { SvmSource } from '../x402/exact-svm/svm-source.ts'
import type { ChainHistory, HistorySettings } from './chain-history.ts'
import type { ReceivingAccount } from './receiving-accounts.ts'

interface SvmHistorySettings extends HistorySettings {
  /** JSON-RPC endpoints by CAIP-2 id. */
  readonly svmRpcUrls: Readonly<Record<string, string>>
}

/** The transactions of the payees’ token accounts since a time. Throws `RpcUnavailableError`. */
export async function openSvmHistory(
  { svmRpcUrls, since, caller, now, sleep }: SvmHistorySettings,
  network: SvmNetwork,
  { payees, asset }: ReceivingAccount,
): Promise<ChainHistory> {
  const url = svmRpcUrls[network.id]
  if (url === undefined) throw new RpcUnavailableError(`${svmRpcVariable(network)} is not set`)
  if (asset !== network.token.address)
    throw new RpcUnavailableError(`this version does not know payments in ${asset}`)
  const source = await SvmSource.open({ chain: new SvmChain(url, caller), now, sleep }, network)
  return {
    span: undefined,
    async *incoming() {
      let count = 0
      for (const payee of payees)
        for await (const incoming of source.incoming(payee, since)) {
          count += incoming.length
          yield { incoming, read: `${count} payments and transfers` }
        }
    },
    status: (record) => source.status(record),
    showsRefund: async (record, signature) => {
      const terms = svmRefundTermsOf(record)
      const landed = await source.transaction(signature)
      if (terms === undefined || landed?.succeeded !== true) return false
      return svmRefunderIn(terms, landed.bytes) !== undefined
    },
  }
}
