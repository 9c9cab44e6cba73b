import { randomBytes } from 'node:crypto'
import { createKeyPairSignerFromPrivateKeyBytes } from '@solana/kit'
import t from 'tap'
import { encodeBase58 } from '../../../../src/engine/base/base58.ts'
import { findSvmNetwork } from '../../../../src/engine/base/networks.ts'
import { systemRuntime } from '../../../../src/engine/base/runtime.ts'
import { FeeLosses } from '../../../../src/engine/chains/svm/fee-losses.ts'
import { SpentFees } from '../../../../src/engine/chains/svm/spent-fees.ts'
import { openSvmAccount } from '../../../../src/engine/base/svm-signature.ts'
import { SvmChain } from '../../../../src/engine/chains/svm/svm-chain.ts'
import type { PaymentRecord, Dispatch } from '../../../../src/engine/ledger/payment-record.ts'
import { PayerLimits } from '../../../../src/engine/x402/exact-evm/payer-limits.ts'
import { createOwnSettler } from '../../../../src/engine/x402/exact-svm/own-settler.ts'
import { svmKey } from '../../../../src/engine/x402/exact-svm/svm-key.ts'
import { readSvm } from '../../../../src/engine/x402/exact-svm/svm-payload.ts'
import {
  svmRequestOf,
  type SvmRequest,
  type SvmSettler,
} from '../../../../src/engine/x402/exact-svm/svm-settler.ts'
import { bentTransaction } from '../../../support/bent-svm.ts'
import { makeRecord } from '../../../support/payment-records.ts'
import { startSvmSale } from '../../../support/svm.ts'
import { openTemporaryLedger } from '../../../support/temporary-ledger.ts'

// Blocks are made when the test makes them.
const sale = await startSvmSale({ blockMs: 3_600_000 })
t.teardown(() => sale.chain.stop())
const ledger = await openTemporaryLedger(t)

const seed = randomBytes(32)
const signer = await createKeyPairSignerFromPrivateKeyBytes(seed)
const key = Buffer.from(await crypto.subtle.exportKey('raw', signer.keyPair.publicKey))
const feePayer = openSvmAccount(encodeBase58(Buffer.concat([seed, key])))
const network = findSvmNetwork('solana-devnet')
if (feePayer === undefined || network === undefined) throw new Error('the fixtures are wrong')
await sale.chain.setLamports(feePayer.address, 1_000_000_000n)
await sale.chain.advance(1)

const chain = new SvmChain(sale.chain.rpcUrl, systemRuntime.caller)
const clock = {
  now: ledger.now,
  sleep: async (ms: number) => {
    await systemRuntime.sleep(ms)
    await sale.chain.advance(1)
  },
}
const context = { ...clock, network, chain, feePayers: new Map([[feePayer.address, feePayer]]) }
const reports: string[] = []

/** As one process has it: of payments in others, it sees their transactions and what these have cost. */
function openSettler(): SvmSettler {
  return createOwnSettler({
    ...context,
    payers: new PayerLimits<string>(async () => 10n ** 12n, clock),
    spent: new SpentFees(),
    losses: new FeeLosses({ ...context, ledger, report: (line) => reports.push(line) }),
  })
}

const settler = openSettler()

/** A payment of the whole sum that its buyer has. */
async function paymentOf(buyer: typeof sale.buyer): Promise<SvmRequest> {
  const transaction = await bentTransaction({ ...sale, buyer }, signer.address)
  const read = readSvm({ payload: { transaction } })
  if (read.kind !== 'payload') throw new Error('the fixture is wrong')
  const accepted = { network: findSvmNetwork('solana-devnet') ?? fail(), payTo: sale.seller }
  const terms = { ...accepted, timeoutSeconds: 60, testnet: true, feePayer: signer.address }
  return svmRequestOf(terms, read.payload, ledger.now() + 90_000)
}

function fail(): never {
  throw new Error('the fixtures are wrong')
}

async function walletWith(atomic: bigint): Promise<typeof sale.buyer> {
  const buyer = await createKeyPairSignerFromPrivateKeyBytes(randomBytes(32))
  await sale.chain.giveTokens(buyer.address, atomic)
  return buyer
}

function recordOf(request: SvmRequest, dispatch: Dispatch | undefined): PaymentRecord {
  const { payer } = request.transfer
  const { id } = network ?? fail()
  const key = svmKey(network ?? fail(), request)
  const record = { ...makeRecord(key), createdAt: ledger.now(), network: id, payer, amount: '10000' }
  return dispatch === undefined ? record : { ...record, dispatch }
}

t.test('what is recorded before it is sent settles the payment after a kill', async (t) => {
  const request = await paymentOf(await walletWith(10_000n))
  const killed = new Error('killed')
  let written: Dispatch | undefined
  const record = async (dispatch: Dispatch): Promise<void> => {
    written = dispatch
    throw killed
  }
  await t.rejects(settler.settle(request, { record }), killed)
  t.match(await settler.resolve(recordOf(request, written)), {
    kind: 'settled',
    receipt: { payer: request.transfer.payer, amount: '10000', transaction: String },
  })
  t.match(await settler.resolve(recordOf(request, written)), { kind: 'settled' }, 'the same again')
  t.match(await settler.resolve(recordOf(request, undefined)), { kind: 'failed' }, 'nothing was recorded')
})

t.test(
  'a transaction that was never in a block has failed when its last height is final, not before',
  async (t) => {
    const request = await paymentOf(await walletWith(10_000n))
    let written: Dispatch | undefined
    const record = async (dispatch: Dispatch): Promise<void> => {
      written = dispatch
      throw new Error('killed')
    }
    await t.rejects(settler.settle(request, { record }))
    await sale.chain.advance(151)
    t.match(await settler.resolve(recordOf(request, written)), { kind: 'unknown' })
    await sale.chain.advance(40)
    t.match(await settler.resolve(recordOf(request, written)), { kind: 'failed' })
  },
)

t.test(
  'a transaction whose signature the node has forgotten is found at the account of its payer',
  async (t) => {
    const request = await paymentOf(await walletWith(10_000n))
    let written: Dispatch | undefined
    const record = async (dispatch: Dispatch): Promise<void> => {
      written = dispatch
    }
    t.match(await settler.settle(request, { record }), { kind: 'settled' })
    await sale.chain.advance(200)
    await sale.chain.setFault({ kind: 'omit', method: 'getSignatureStatuses' })
    t.match(await settler.resolve(recordOf(request, written)), { kind: 'settled' })
    await sale.chain.setFault({ kind: 'refuse', method: 'getSignaturesForAddress' })
    t.match(await settler.resolve(recordOf(request, written)), { kind: 'unknown' }, 'nothing is concluded')
    await sale.chain.clearFaults()
  },
)

t.test('a payer whose transactions fail in a block is refused after the second one', async (t) => {
  const buyer = await walletWith(10_000n)
  const record = async (): Promise<void> => undefined
  // No block has taken the money yet, so that all of them pass their simulation, in three processes.
  const requests = await Promise.all([1, 2, 3].map(() => paymentOf(buyer)))
  const outcomes = await Promise.all(requests.map((request) => openSettler().settle(request, { record })))
  t.same(
    outcomes.map(({ kind }) => kind).toSorted((a, b) => a.localeCompare(b)),
    ['failed', 'failed', 'settled'],
  )
  t.match(reports, [/cost 0.000010001; /, /cost 0.000010001; 0.000020002 of at most 0.01 SOL were lost/])
  await sale.chain.giveTokens(buyer.address, 10_000n)
  t.match(await openSettler().simulate(await paymentOf(buyer)), { code: 'payer_suspended' })
  const other = await walletWith(10_000n)
  t.equal(await openSettler().simulate(await paymentOf(other)), undefined, 'others are served')
})
