import { concatHex, fromRlp, keccak256, toRlp, type Account as ViemAccount } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { Account, Actions, P256, Transaction } from 'viem/tempo'
import t from 'tap'
import { toMicros } from '../../../../src/engine/base/money.ts'
import { openMppProtocol } from '../../../support/mpp.ts'
import { addressOf, randomKey, type Hex } from '../../../support/payment.ts'
import {
  ALPHA_USD,
  clientOf,
  closeCredential,
  credentialOf,
  memoFor,
  openCredential,
  PATH_USD,
  signTempo,
  signTransfer,
  startTempo,
  payAs as payAsClient,
  type EchoedChallenge,
  type TransactionFaults,
} from '../../../support/tempo.ts'

const RECIPIENT = addressOf(randomKey())
const STRANGER = addressOf(randomKey())

const chain = await startTempo()
const counter = openMppProtocol({ rpcUrl: chain.rpcUrl, recipient: RECIPIENT })
const key = await chain.wallet()
t.teardown(async () => {
  await counter.close()
  await chain.stop()
})

function sign(challenge: EchoedChallenge, faults?: TransactionFaults, by: Hex = key): Promise<string> {
  return signTempo(chain.rpcUrl, by, challenge, faults)
}

/** The client of the registry, given our challenge as a 402. */
function payAs(account: ViemAccount, challenge: EchoedChallenge): Promise<string> {
  return payAsClient(chain.rpcUrl, account, challenge)
}

function rawOf(authorization: string): `0x76${string}` {
  return `0x76${String(openCredential(authorization).payload['signature']).slice(4)}`
}

t.test('moves exactly the price, once, for the stock client', async (t) => {
  const authorization = await payAs(privateKeyToAccount(key), counter.challenge())
  t.equal(await counter.refusal(authorization), undefined)
  const payment = counter.take(authorization)
  t.match(payment, { network: 'eip155:4217', payee: RECIPIENT, authorizedAmount: 5_000n, token: undefined })
  const verification = await payment.verify()
  if (verification.kind !== 'verified') throw new Error(verification.kind)
  t.equal(verification.payer, addressOf(key), 'EIP-55')
  const raw = rawOf(authorization)
  t.equal(verification.validBefore, (Transaction.deserialize(raw).validBefore ?? 0) * 1000, 'milliseconds')
  const { settlement, dispatched } = await counter.settle(authorization)
  const hash = keccak256(raw)
  t.strictSame(dispatched, [{ kind: 'payer', hash, raw }], 'recorded before it was sent')
  if (settlement.kind !== 'settled') throw new Error(settlement.kind)
  const { block, ...receipt } = settlement.receipt
  t.strictSame(receipt, {
    transaction: hash,
    network: 'eip155:4217',
    payer: addressOf(key),
    amount: '5000',
  })
  t.match(block, { number: Number, hash: /^0x[0-9a-f]{64}$/ }, 'looked at until it is final')
  t.strictSame(await chain.received(RECIPIENT), [5_000n])
  t.equal((await counter.settle(authorization)).settlement.kind, 'settled', 'settling again finds it settled')
  t.strictSame(await chain.received(RECIPIENT), [5_000n], 'and moves nothing')
})

t.test('treats the signer as the payer, whatever the credential claims', async (t) => {
  const credential = openCredential(await sign(counter.challenge()))
  const lying = closeCredential({ ...credential, source: `did:pkh:eip155:4217:${STRANGER}` })
  const verification = await counter.take(lying).verify()
  t.match(verification, { kind: 'verified', payer: addressOf(key) })
})

t.test('refuses a transaction that differs from the challenge, unsent', async (t) => {
  const soon = Math.floor(Date.now() / 1000) + 25
  const other = counter.challenge()
  const faults: Readonly<Record<string, readonly [TransactionFaults, RegExp]>> = {
    'less than the price': [{ amount: 4_999n }, /exact amount/],
    'more than the price': [{ amount: 5_001n }, /exact amount/],
    'another recipient': [{ to: STRANGER }, /exact amount/],
    'another token': [{ token: ALPHA_USD }, /exact amount/],
    'a plain transfer': [{ memo: null }, /with a memo/],
    'the memo of another challenge': [{ memo: memoFor(other) }, /memo is not bound/],
    'the memo of another realm': [{ memo: memoFor({ ...other, realm: 'evil' }) }, /memo is not bound/],
    'an empty memo': [{ memo: `0x${'0'.repeat(64)}` }, /memo is not bound/],
    'the transfer twice': [{ times: 2 }, /more than once/],
    'another chain': [{ chainId: 42431 }, /another chain than 4217/],
    'no end of validity': [{ validBefore: null }, /no validBefore/],
    'validity beyond the challenge': [{ validBefore: soon + 600 }, /longer than its challenge/],
    'a fee for us to pay': [{ feePayer: true }, /not a signed Tempo transaction/],
  }
  const before = await chain.received(RECIPIENT)
  for (const [name, [fault, detail]] of Object.entries(faults)) {
    const authorization = await sign(counter.challenge(), fault)
    t.match(await counter.refusal(authorization), { code: 'verification_failed', detail }, name)
    const { settlement, dispatched } = await counter.settle(authorization)
    t.equal(settlement.kind, 'failed', name)
    t.strictSame(dispatched, [], `${name}: nothing was recorded to be sent`)
  }
  t.strictSame(await chain.received(RECIPIENT), before)
  t.strictSame(await chain.received(STRANGER), [])
})

t.test('refuses a payment in the name of an account without its signature', async (t) => {
  const challenge = counter.challenge()
  const signed = await signTransfer(chain.rpcUrl, randomKey(), challenge)
  const fields = fromRlp(`0x${signed.slice(4)}`, 'hex')
  if (!Array.isArray(fields)) throw new Error('no list')
  // Where a sponsor’s signature belongs, clients may write who they are: libraries believe it.
  for (const sender of [addressOf(key), '0x00'] as const) {
    const named = concatHex(['0x76', toRlp([...fields.slice(0, 11), sender, ...fields.slice(12)])])
    t.match(await counter.refusal(credentialOf(challenge, named)), {
      code: 'verification_failed',
      detail: /leaves its fee/,
    })
  }
})

t.test('refuses bytes other than a transaction like a wrong payment', async (t) => {
  const challenge = counter.challenge()
  const signed = await signTransfer(chain.rpcUrl, key, challenge)
  const flipped: Hex = `0x${signed.slice(2, -20)}${signed.at(-20) === '0' ? '1' : '0'}${signed.slice(-19)}`
  const garbage: Readonly<Record<string, Hex>> = {
    'no RLP': `0x76${'ab'.repeat(40)}`,
    'cut short': `0x${signed.slice(2, -40)}`,
    'an Ethereum transaction': '0x02f86c',
    'the envelope of a sponsor': `0x78${signed.slice(4)}`,
    nothing: '0x76',
    'a flipped signature': flipped,
  }
  for (const [name, transaction] of Object.entries(garbage)) {
    const refusal = await counter.refusal(credentialOf(challenge, transaction))
    t.match(refusal, { code: 'verification_failed' }, name)
    t.notMatch(refusal?.detail, /viem|rlp|0x\w{10}|Error|http/i, name)
  }
  t.strictSame(counter.reports, [], 'the thread has lived through it')
})

t.test('refuses a challenge of another request before anything else', async (t) => {
  const authorization = await sign(counter.challenge())
  const { challenge, payload } = openCredential(authorization)
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  for (const [name, value] of Object.entries({
    request: encode({ amount: '1' }),
    expires: '2099-01-01T00:00:00.000Z',
    realm: 'evil',
    opaque: encode({ _mppx_scope: 'other' }),
    id: 'A'.repeat(43),
    digest: 'sha-256=x',
  })) {
    const tampered = closeCredential({ challenge: { ...challenge, [name]: value }, payload })
    t.match(await counter.refusal(tampered), { code: 'invalid_challenge' }, name)
  }
  for (const name of ['expires', 'opaque']) {
    const { [name]: _, ...rest } = challenge
    t.match(await counter.refusal(closeCredential({ challenge: rest, payload })), {
      code: 'invalid_challenge',
    })
  }
  const { offer } = counter
  t.match(await counter.refusal(authorization, { ...offer, scope: 'ping:others' }), {
    code: 'invalid_challenge',
  })
  t.match(
    await counter.refusal(authorization, { ...offer, price: toMicros(5_001n) }),
    { code: 'invalid_challenge' },
    'the price of today is another',
  )
  t.equal(await counter.refusal(authorization), undefined, 'and where it belongs it is taken')
})

t.test('accepts an amount that was offered lately when the purchase allows it', async (t) => {
  const old = counter.challenge()
  const payment = counter.take(await sign(old))
  t.match(payment.check({ ...counter.offer, price: toMicros(9_999n) }, Date.now()), {
    code: 'invalid_challenge',
  })
  t.equal(payment.check({ ...counter.offer, price: toMicros(5_000n) }, Date.now()), undefined)
})

t.test('tells an expired challenge from a wrong one', async (t) => {
  const authorization = await sign(counter.challenge())
  const payment = counter.take(authorization)
  t.equal(payment.check(counter.offer, Date.now() + 299_000), undefined)
  t.match(payment.check(counter.offer, Date.now() + 300_001), { code: 'payment_expired' })
})

t.test(
  'leaves the nonce of a transaction that expires to the chain, which judges it before the work',
  async (t) => {
    const authorization = await sign(counter.challenge(), { nonce: 5 })
    t.match(await counter.refusal(authorization), {
      code: 'verification_failed',
      detail: /the network would not carry/,
    })
  },
)

t.test('answers 402 to a buyer without balance', async (t) => {
  const poor = randomKey()
  const refusal = await counter.refusal(await sign(counter.challenge(), {}, poor))
  t.match(refusal, { code: 'verification_failed' })
  t.match(refusal?.detail, /amount and the fee/)
})

t.test('finds a balance below the price before the work', async (t) => {
  const [poor, other] = [await chain.wallet(), addressOf(randomKey())]
  const client = clientOf(chain.rpcUrl, privateKeyToAccount(poor))
  const [token, feeToken] = [PATH_USD, ALPHA_USD] as const
  await Actions.token.transferSync(client, { token, to: other, amount: 99_995_001n, feeToken })
  t.match(await counter.refusal(await sign(counter.challenge(), {}, poor)), {
    code: 'verification_failed',
    detail: /holds less/,
  })
})

t.test('fails the settlement, unsent, when the money is gone after the work', async (t) => {
  const spender = await chain.wallet()
  const authorization = await sign(counter.challenge(), {}, spender)
  t.equal(await counter.refusal(authorization), undefined)
  const client = clientOf(chain.rpcUrl, privateKeyToAccount(spender))
  await Actions.token.transferSync(client, {
    token: PATH_USD,
    to: STRANGER,
    amount: 99_999_000n,
    feeToken: ALPHA_USD,
  })
  const { settlement, dispatched } = await counter.settle(authorization)
  t.match(settlement, { kind: 'failed', refusal: { code: 'verification_failed' } })
  t.strictSame(dispatched, [])
})

t.test(
  'treats a second transaction for the same challenge as another payment under the same key',
  async (t) => {
    const challenge = counter.challenge()
    const soon = Math.floor(Date.now() / 1000) + 20
    const [one, two] = [
      counter.take(await sign(challenge)),
      counter.take(await sign(challenge, { validBefore: soon })),
    ]
    t.equal(one.key, two.key)
    t.equal(one.key, `mpp:${challenge.id}`)
    t.not(one.authorizationHash, two.authorizationHash)
    t.match(one.copies, { code: 'invalid_challenge' })
  },
)

t.test('recognises a transaction in any letter case', async (t) => {
  const credential = openCredential(await sign(counter.challenge()))
  const signature = String(credential.payload['signature'])
  const loud = {
    ...credential,
    payload: { type: 'transaction', signature: `0x${signature.slice(2).toUpperCase()}` },
  }
  const [quiet, shouted] = [counter.take(closeCredential(credential)), counter.take(closeCredential(loud))]
  t.equal(shouted.authorizationHash, quiet.authorizationHash)
  t.equal((await shouted.verify()).kind, 'verified')
})

t.test('accepts a passkey, and refuses one with the public key of another', async (t) => {
  const passkey = Account.fromP256(P256.randomPrivateKey())
  await chain.fund(passkey.address)
  const challenge = counter.challenge()
  const authorization = await payAs(passkey, challenge)
  t.equal(await counter.refusal(authorization), undefined)
  t.match(await counter.take(authorization).verify(), { kind: 'verified', payer: passkey.address })
  const raw = String(openCredential(authorization).payload['signature'])
  // The first byte of r, of 130 bytes of signature: the public key after it still names the same account.
  const at = raw.length - 129 * 2
  const forged: Hex = `0x${raw.slice(2, at)}${raw.at(at) === '0' ? '1' : '0'}${raw.slice(at + 1)}`
  t.match(await counter.refusal(credentialOf(challenge, forged)), {
    code: 'verification_failed',
    detail: /not signed/,
  })
  t.equal((await counter.settle(authorization)).settlement.kind, 'settled')
})

t.test('accepts an access key for its account once the chain knows it', async (t) => {
  const root = Account.fromSecp256k1(randomKey())
  await chain.fund(root.address)
  const access = Account.fromP256(P256.randomPrivateKey(), { access: root })
  const before = await payAs(access, counter.challenge())
  t.match(
    await counter.refusal(before),
    { code: 'verification_failed', detail: /not signed/ },
    'accepts only an account that has signed',
  )
  const client = clientOf(chain.rpcUrl, root)
  const expiry = Math.floor(Date.now() / 1000) + 3_600
  await Actions.accessKey.authorizeSync(client, { accessKey: access, expiry })
  const authorization = await payAs(access, counter.challenge())
  t.equal(await counter.refusal(authorization), undefined)
  t.match(await counter.take(authorization).verify(), { kind: 'verified', payer: root.address })
  t.equal((await counter.settle(authorization)).settlement.kind, 'settled')
})

t.test('accepts a challenge for one generation after the secret changed', async (t) => {
  const secrets = ['first', 'second', 'third'].map((name) => name.padEnd(32, '.')) as [string, string, string]
  const open = (...secretKeys: [string, ...string[]]) =>
    openMppProtocol({ rpcUrl: chain.rpcUrl, recipient: RECIPIENT, secretKeys })
  const [before, during, after] = [
    open(secrets[0]),
    open(secrets[1], secrets[0]),
    open(secrets[2], secrets[1]),
  ]
  t.teardown(() => Promise.all([before, during, after].map((each) => each.close())))
  const authorization = await sign(before.challenge())
  t.equal(await during.refusal(authorization), undefined, 'the second key in the list still verifies')
  t.match(await after.refusal(authorization), { code: 'invalid_challenge' })
  t.equal((await during.settle(authorization)).settlement.kind, 'settled')
  t.equal(await after.refusal(await sign(during.challenge())), undefined, 'new ones are bound by the first')
})
