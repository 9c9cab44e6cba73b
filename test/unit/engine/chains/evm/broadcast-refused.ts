import { systemEvery } from '../../../../../src/engine/base/every.ts'
import t from 'tap'
import { FeeOracle } from 'ratecard/chains/evm/fees'
import { Signer } from '../../../../../src/engine/chains/evm/signer.ts'
import { openAccount } from 'ratecard/chains/evm/local-account'
import { Multicall } from 'ratecard/chains/evm/multicall'
import { Chain } from '../../../../../src/engine/chains/evm/chain.ts'
import { randomKey } from '../../../../support/payment.ts'
import { networkNamed } from '../../../../support/shipped-catalog.ts'
import { openTemporaryLedger } from '../../../../support/temporary-ledger.ts'

const ledger = await openTemporaryLedger(t)

const ANSWERS: Readonly<Record<string, unknown>> = {
  eth_getTransactionCount: '0x0',
  eth_maxPriorityFeePerGas: '0x1',
  eth_getBlockByNumber: { number: '0x1', timestamp: '0x1', baseFeePerGas: '0x1' },
  eth_getBalance: '0xde0b6b3a7640000',
  eth_getTransactionByHash: null,
}

/** A node that answers everything and refuses every broadcast in these words. */
function refusingNode(message: string): typeof fetch {
  return async (_, init) => {
    const { id, method } = JSON.parse(typeof init?.body === 'string' ? init.body : '{}') as {
      id: number
      method: string
    }
    const refused = { error: { code: -32000, message } }
    const told = method === 'eth_sendRawTransaction' ? refused : { result: ANSWERS[method] }
    return Response.json({ jsonrpc: '2.0', id, ...told })
  }
}

async function send(message: string): Promise<string> {
  const chain = new Chain('http://node.example', refusingNode(message))
  const signer = new Signer({
    account: openAccount(randomKey()),
    chain,
    fees: new FeeOracle(chain, () => Date.now()),
    multicall: new Multicall(chain, { now: () => Date.now() }),
    network: networkNamed('base'),
    ledger,
    owner: 'one',
    now: () => Date.now(),
    every: systemEvery,
    sleep: async () => undefined,
    report: () => undefined,
  })
  const request = {
    to: '0x00000000000000000000000000000000deadbeef',
    data: '0x',
    gas: 30_000n,
    maxFeePerGas: 100n,
    expires: Infinity,
    check: async () => undefined,
    reserve: async () => 'held' as const,
    journal: { record: async () => undefined },
  } as const
  const sent = await signer.send(request, 'patiently')
  return sent.kind
}

t.test('keeps a payment unknown after a refusal that proves nothing', async (t) => {
  for (const message of [
    'nonce too low',
    'nonce too low: next nonce 5, tx nonce 4',
    'request limit reached',
    'replacement transaction underpriced',
    '',
  ]) {
    t.equal(await send(message), 'unknown', message)
  }
})

t.test('refuses a payment at once when it is larger than any pool accepts', async (t) => {
  for (const message of [
    'insufficient funds for gas * price + value: balance 0, tx cost 30000',
    'intrinsic gas too low',
    'max fee per gas less than block base fee',
    'transaction underpriced',
  ]) {
    t.equal(await send(message), 'unsent', message)
  }
})
