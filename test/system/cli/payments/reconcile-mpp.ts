import t, { type Test } from 'tap'
import {
  createPublicClient,
  createWalletClient,
  defineChain,
  http,
  keccak256,
  parseAbi,
  stringToBytes,
} from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import type { PaymentRecord, Purchase } from '../../../../src/engine/ledger/payment-record.ts'
import { startAnvil } from '../../../../src/sandbox/anvil.ts'
import {
  ANSWER,
  HOUR,
  MINUTE,
  openLedgerFixture,
  parse,
  purchaseOf,
  randomHash,
  RAW,
  SECRETS,
  sell,
  type LedgerFixture,
  type Processing,
} from '../../../support/ledger-fixture.ts'
import { receiptOf } from '../../../support/receipt-of.ts'
import { runLine } from '../../../support/run-command.ts'
import { addressOf, randomKey, type Hex } from '../../../support/payment.ts'

/** Flags without which anvil is no Tempo chain that takes payments. */
const TEMPO = ['--network', 'tempo', '--hardfork', 'T3', '--block-time', '1', '--mixed-mining']
const anvil = await startAnvil(4217, TEMPO)
t.teardown(() => anvil.stop())

const PATH_USD = '0x20c0000000000000000000000000000000000000'
const ABI = parseAbi([
  'function transferWithMemo(address to, uint256 amount, bytes32 memo)',
  'function transfer(address to, uint256 amount) returns (bool)',
])
const payer = mnemonicToAccount('test test test test test test test test test test test junk')
const chain = defineChain({
  id: 4217,
  name: 'Tempo',
  nativeCurrency: { name: 'USD', symbol: 'USD', decimals: 18 },
  rpcUrls: { default: { http: [anvil.rpcUrl] } },
})
const wallet = createWalletClient({ chain, transport: http(), account: payer })
const node = createPublicClient({ chain, transport: http(), pollingInterval: 50 })

/** What MPP clients put into a transfer, so that it belongs to one challenge. */
function memoOf(challenge: string): Hex {
  const digits = (text: string, bytes: number): string =>
    keccak256(stringToBytes(text)).slice(2, 2 + 2 * bytes)
  return `0x${digits('mpp', 4)}01${digits('api.example.com', 10)}${'0'.repeat(20)}${digits(challenge, 7)}`
}

async function mined(hash: Hex): Promise<Hex> {
  await receiptOf(node, hash)
  return hash
}

async function pay(payTo: Hex, challenge: string, amount = 5000n): Promise<Hex> {
  const args = [payTo, amount, memoOf(challenge)] as const
  return mined(
    await wallet.writeContract({ address: PATH_USD, abi: ABI, functionName: 'transferWithMemo', args }),
  )
}

function purchase(payTo: Hex, challenge: string, changes: Partial<Purchase> = {}): Purchase {
  return purchaseOf({
    key: `mpp:eip155:4217:${challenge}`,
    protocol: 'mpp',
    network: 'eip155:4217',
    asset: PATH_USD,
    payer: payer.address,
    payee: payTo,
    validBefore: Date.now() - HOUR,
    ...changes,
  })
}

function sold(transaction: string, amount = '5000'): Processing {
  return sell({ transaction, network: 'eip155:4217', payer: payer.address, amount })
}

/** The signed transaction was sent, and then nothing is known any more. */
function lost(hash: string): Processing {
  return async (lease) => {
    await lease.advance('fulfilled', { answer: ANSWER })
    await lease.advance('settling', { dispatch: { kind: 'payer', hash, raw: RAW } })
    await lease.advance('unknown')
  }
}

interface Found {
  readonly kind: string
  readonly ledger: { readonly payment: string } | null
  readonly chain: { readonly shows: string; readonly transaction?: string }
}

async function reconcile(t: Test, { dataDir }: LedgerFixture, code: number) {
  const ran = await runLine(['payments', 'reconcile', '--json', '--data-dir', dataDir], {
    variables: { RPC_URL_4217: anvil.rpcUrl, PAY_TO: addressOf(randomKey()) },
  })
  t.equal(ran.code, code, ran.err)
  for (const secret of SECRETS) t.notMatch(ran.out + ran.err, secret, 'nothing secret is printed')
  const [statement] = parse(ran.out)['networks'] as unknown as {
    readonly agreed: number
    readonly other_transfers: object
    readonly differences: readonly Found[]
  }[]
  if (statement === undefined) throw new Error(ran.out)
  return statement
}

t.test('confirms MPP payments that are recorded correctly among other transfers', async (t) => {
  const fixture = openLedgerFixture(t)
  const payTo = addressOf(randomKey())
  for (const challenge of ['one', 'two'])
    await fixture.record(purchase(payTo, challenge), Date.now() - HOUR, sold(await pay(payTo, challenge)))
  const write = { address: PATH_USD, abi: ABI } as const
  const foreign: Hex = `0x${'ab'.repeat(32)}`
  await mined(await wallet.writeContract({ ...write, functionName: 'transfer', args: [payTo, 3n] }))
  await mined(
    await wallet.writeContract({ ...write, functionName: 'transferWithMemo', args: [payTo, 4n, foreign] }),
  )
  const statement = await reconcile(t, fixture, 0)
  t.match(statement, { agreed: 2, differences: [], other_transfers: { count: 2, amount: '0.000007' } })
})

t.test('finds an MPP payment on which ledger and chain differ, and shows the chain’s side', async (t) => {
  const fixture = openLedgerFixture(t)
  const payTo = addressOf(randomKey())
  const at = Date.now() - 30 * MINUTE
  const ids: string[] = []
  const book = async (
    challenge: string,
    work: Processing,
    changes: Partial<Purchase> = {},
  ): Promise<PaymentRecord> => {
    const record = await fixture.record(purchase(payTo, challenge, changes), at, work)
    ids.push(record.id)
    return record
  }
  const tooMuch = 2n ** 100n
  const args = [payTo, tooMuch, memoOf('reverted')] as const
  const reverted = await mined(
    await wallet.writeContract({
      address: PATH_USD,
      abi: ABI,
      functionName: 'transferWithMemo',
      args,
      gas: 1_000_000n,
    }),
  )
  await book('missing', sold(randomHash()))
  await book('open', sold(randomHash()), { validBefore: Date.now() + HOUR })
  await book('reverted', sold(reverted))
  await book('elsewhere', sold(await pay(addressOf(randomKey()), 'elsewhere')))
  await book('cheaper', sold(await pay(payTo, 'cheaper', 4999n)))
  await book('moved', lost(await pay(payTo, 'moved')))
  await book('never', lost(randomHash()))
  const voided = await pay(payTo, 'voided')
  await book('voided', (lease) => lease.void())
  const stranger = await pay(payTo, 'stranger')
  const { agreed, differences } = await reconcile(t, fixture, 2)
  t.equal(agreed, 0)
  const told = new Map(differences.map((each) => [each.ledger?.payment, each]))
  t.equal(told.size, ids.length + 1)
  const expected = [
    ['missing_on_chain', 'expired'],
    ['missing_on_chain', 'open'],
    ['missing_on_chain', 'reverted'],
    ['missing_on_chain', 'elsewhere'],
    ['differs', 'moved'],
    ['unresolved', 'moved'],
    ['unresolved', 'expired'],
    ['not_booked', 'moved'],
  ] as const
  for (const [place, [kind, shows]] of expected.entries())
    t.match(told.get(ids[place]), { kind, chain: { shows } }, `${kind}, ${shows}`)
  t.equal(told.get(ids.at(-1))?.chain.transaction, voided, 'found by its memo alone')
  t.match(told.get(undefined), { kind: 'not_in_ledger', chain: { transaction: stranger } })
})

t.test('finds an MPP challenge that was paid twice', async (t) => {
  const fixture = openLedgerFixture(t)
  const payTo = addressOf(randomKey())
  const first = await pay(payTo, 'twice')
  const second = await pay(payTo, 'twice')
  await fixture.record(purchase(payTo, 'twice'), Date.now() - HOUR, sold(first))
  const { agreed, differences } = await reconcile(t, fixture, 2)
  t.equal(agreed, 1)
  t.match(differences, [{ kind: 'not_in_ledger', chain: { transaction: second } }])
})
