import { x402Facilitator } from '@x402/core/facilitator'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { BatchSettlementEvmScheme } from '@x402/evm/batch-settlement/facilitator'
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import { createWalletClient, http, publicActions } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { base } from 'viem/chains'

export const NETWORK = 'eip155:8453'

/**
 * The facilitator of @x402/core with one key. One transaction is prepared and sent at a time: without that queue
 * concurrent settlements take the same account nonce, and viem's nonceManager leaves gaps when a broadcast fails.
 */
export function createFacilitator({ rpcUrl, signerKey }) {
  const wallet = createWalletClient({
    account: privateKeyToAccount(signerKey),
    chain: base,
    transport: http(rpcUrl),
    // viem looks for receipts every two seconds by itself: every figure would be a multiple of that.
    pollingInterval: 10,
  }).extend(publicActions)
  let last = Promise.resolve()
  const inTurn = (send) => {
    const sent = last.then(send)
    last = sent.catch(() => undefined)
    return sent
  }
  const signer = toFacilitatorEvmSigner({
    address: wallet.account.address,
    readContract: (call) => wallet.readContract(call),
    verifyTypedData: (data) => wallet.verifyTypedData(data),
    writeContract: (call) => inTurn(() => wallet.writeContract(call)),
    sendTransaction: (transaction) => inTurn(() => wallet.sendTransaction(transaction)),
    waitForTransactionReceipt: (wanted) => wallet.waitForTransactionReceipt(wanted),
    getCode: (at) => wallet.getCode(at),
  })
  const facilitator = new x402Facilitator()
    .register(NETWORK, new ExactEvmScheme(signer))
    .register(NETWORK, new BatchSettlementEvmScheme(signer))
  return {
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
    getSupported: async () => facilitator.getSupported(),
  }
}
