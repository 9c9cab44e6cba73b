import { fromRlp, keccak256, parseSignature, toRlp, concatHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import t from 'tap'
import { realmOf } from '../../../../src/engine/mpp/mpp-challenge.ts'
import { readUsualTransfer } from '../../../../src/engine/mpp/usual-transfer.ts'
import { Validator, type Demand, type SignedTransfer } from '../../../../src/engine/mpp/transfer-validator.ts'
import { addressOf, randomKey, type Hex } from '../../../support/payment.ts'
import { randomBytes, SEED } from '../../../support/random.ts'
import {
  memoFor,
  PATH_USD,
  signTransfer,
  TEMPO_CHAIN,
  type TransactionFaults,
} from '../../../support/tempo.ts'

const CASES = Number(process.env['FUZZ_CASES'] ?? 3_000)
/** Nothing is asked of it: keys of secp256k1 are checked without a chain. */
const NO_NODE = 'http://127.0.0.1:1'
const REALM = realmOf('https://api.example.com')
const RECIPIENT = addressOf(randomKey())
const key = randomKey()
const account = privateKeyToAccount(key)
const challenge = {
  id: 'challenge-1',
  realm: REALM,
  method: 'tempo',
  intent: 'charge',
  request: { amount: '5000', currency: PATH_USD, recipient: RECIPIENT },
} as const
const demand: Demand = {
  chainId: TEMPO_CHAIN,
  currency: PATH_USD,
  recipient: RECIPIENT,
  amount: '5000',
  realm: REALM,
  challengeId: challenge.id,
}
const validator = new Validator({
  realm: REALM,
  secretKeys: [],
  rpcUrls: { [TEMPO_CHAIN]: NO_NODE },
  report: (fault) => t.fail(String(fault)),
})
t.teardown(() => validator.close())

/** What viem reads, in the thread. */
async function readByViem(transaction: Hex): Promise<SignedTransfer | undefined> {
  const answer = await validator.ask({ kind: 'read', transaction, demand })
  return answer.kind === 'transfer' ? answer.transfer : undefined
}

/** Without what we add for the trial. */
function fieldsOf(transfer: SignedTransfer | undefined): unknown {
  return transfer && { ...transfer, trial: undefined }
}

const sign = (faults: TransactionFaults = {}): Promise<Hex> => signTransfer(NO_NODE, key, challenge, faults)

t.test('reads the usual payment as viem reads it', async (t) => {
  for (const faults of [{}, { nonceKey: 0n, nonce: 7 }, { nonceKey: 5n }, { feeToken: PATH_USD }] as const) {
    const transaction = await sign(faults)
    const ours = readUsualTransfer(transaction, demand)
    t.equal(ours?.payer, account.address)
    t.equal(ours?.hash, keccak256(transaction))
    t.strictSame(fieldsOf(ours), await readByViem(transaction))
  }
})

t.test('leaves every other transaction to viem', async (t) => {
  const others: readonly TransactionFaults[] = [
    { amount: 4_999n },
    { to: addressOf(randomKey()) },
    { token: '0x20c0000000000000000000000000000000000001' },
    { memo: null },
    { memo: memoFor({ ...challenge, id: 'challenge-2' }) },
    { validBefore: null },
    { times: 2 },
    { sweep: { to: RECIPIENT, amount: 1n } },
    { chainId: TEMPO_CHAIN + 1 },
    { validAfter: 1 },
    { feePayer: true },
  ]
  for (const faults of others) t.equal(readUsualTransfer(await sign(faults), demand), undefined)
})

type Fields = readonly (Hex | Fields)[]

/** Signs fields as they are, whatever they are. */
async function signFields(fields: Fields, spell: (signature: Hex) => Hex = (each) => each): Promise<Hex> {
  const hash = keccak256(concatHex(['0x76', toRlp(fields)]))
  return concatHex(['0x76', toRlp([...fields, spell(await account.sign({ hash }))])])
}

t.test(
  `accepts nothing that viem reads otherwise (${CASES} hostile transactions, seed ${SEED})`,
  async (t) => {
    const random = (): number => randomBytes(4).readUInt32BE() / 2 ** 32
    const below = (limit: number): number => Math.floor(random() * limit)
    const sound = await sign()
    const decoded = fromRlp(`0x${sound.slice(4)}`, 'hex') as Fields
    const unsigned = decoded.slice(0, -1)
    const ODD: readonly (Hex | Fields)[] = [
      '0x',
      '0x00',
      '0x01',
      '0x0001',
      '0x7f',
      '0x80',
      `0x${'ff'.repeat(32)}`,
      `0x01${'00'.repeat(32)}`,
      [],
      ['0x'],
      [[]],
      PATH_USD,
      account.address,
    ]
    const SPELLINGS: readonly ((signature: Hex) => Hex)[] = [
      (each) => each,
      (each) => each,
      (each) => `0x${each.slice(2, 130)}${each.endsWith('1b') ? '00' : '01'}`,
      (each) => `${each}00`,
      (each) => `0x${each.slice(2, -2)}`,
      (each) => `0x01${each.slice(2)}`,
      (each) => {
        const { r, s, v = 27n } = parseSignature(each)
        const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
        const high = (order - BigInt(s)).toString(16).padStart(64, '0')
        return `0x${r.slice(2)}${high}${v === 27n ? '1c' : '1b'}`
      },
    ]
    const odd = (): Hex | Fields => ODD[below(ODD.length)] ?? '0x'
    const spelling = () => SPELLINGS[below(SPELLINGS.length)]
    const changed = (fields: Fields): Fields => {
      const at = below(fields.length + 1)
      const here = fields[at]
      if (Array.isArray(here) && here.length > 0 && random() < 0.7) return fields.with(at, changed(here))
      const kind = below(6)
      if (kind === 0) return fields.toSpliced(at, 0, odd())
      if (kind === 1 && fields.length > 1) return fields.toSpliced(at, 1)
      if (kind === 2 && typeof here === 'string') return fields.with(at, concatHex([here, '0x00']))
      if (kind === 3 && typeof here === 'string') return fields.with(at, concatHex(['0x00', here]))
      return here === undefined ? fields : fields.with(at, odd())
    }
    const flipped = (transaction: Hex): Hex => {
      const bytes = Buffer.from(transaction.slice(2), 'hex')
      const at = below(bytes.length)
      bytes[at] = (bytes[at] ?? 0) ^ (1 << below(8))
      return `0x${bytes.toString('hex')}`
    }
    const cut = (transaction: Hex): Hex =>
      `0x${transaction.slice(2, 2 + 2 * (1 + below(transaction.length / 2)))}`
    const hostile = async (): Promise<Hex> => {
      const kind = below(10)
      if (kind < 3) return flipped(sound)
      if (kind === 3) return cut(sound)
      if (kind === 4) return concatHex([sound, `0x${below(256).toString(16).padStart(2, '0')}`])
      if (kind === 5) return signFields(unsigned, spelling())
      return signFields(changed(unsigned), spelling())
    }
    let [accepted, differences] = [0, 0]
    for (let n = 0; n < CASES; n += 1) {
      const transaction = await hostile()
      const ours = readUsualTransfer(transaction, demand)
      if (ours === undefined) continue
      accepted += 1
      const theirs = fieldsOf(await readByViem(transaction))
      if (t.strictSame(fieldsOf(ours), theirs, `case ${n}`)) continue
      differences += 1
      t.comment(transaction)
      if (differences > 5) break
    }
    t.equal(differences, 0)
    t.ok(accepted > CASES / 50, `${accepted} were accepted`)
  },
)
