import { toChecksum } from '../../src/engine/base/address.ts'
import { isJsonObject, type Json, type JsonObject } from '../../src/engine/base/json.ts'
import { UPTO_PROXY } from '../../src/engine/base/permit2.ts'
import type { Route } from '../../src/engine/catalog/catalog.ts'
import { word } from '../../src/engine/chains/evm/abi.ts'
import { authorizationDigest, fieldsOf } from '../../src/engine/chains/evm/eip3009/digest.ts'
import { permitDigest } from '../../src/engine/chains/evm/permit2/permit.ts'
import { signDigest } from '../../src/engine/chains/evm/signature.ts'
import type { Protocol } from '../../src/engine/payment/protocol.ts'
import type { SvmAccount } from '../../src/engine/base/svm-signature.ts'
import { writeTransferMessage } from '../../src/engine/base/svm-transfer-message.ts'
import { tokenAccountOf } from '../../src/engine/base/token-account.ts'
import { svmKey } from '../../src/engine/x402/exact-svm/svm-key.ts'
import { readSvm } from '../../src/engine/x402/exact-svm/svm-payload.ts'
import { quoteCall } from '../../src/engine/purchase/purchase.ts'
import { paymentKey } from '../../src/engine/x402/exact-evm/payment-key.ts'
import { uptoKey } from '../../src/engine/x402/upto-evm/upto-key.ts'
import type { SimulatedChain } from './chain.ts'
import { BASE, BASE_URL, wayOf, type Wallet, type Way } from './market.ts'
import { SOLANA, type SimulatedSvmChain } from './svm-chain.ts'
import type { Random } from './random.ts'

/** What a buyer has signed. */
export interface SignedPayment {
  readonly header: string
  /** Undefined: the payment gets its key from what it buys. */
  readonly key: string | undefined
  /** What the buyer has to cancel on the chain so that it moves nothing. */
  readonly nonce: string
  /** For the trace. */
  readonly name: string
}

/** An offer of a process, and everything else that a payment of it repeats. */
export interface Demand {
  readonly accepted: JsonObject
  /** In atomic units. */
  readonly amount: bigint
  /** Seconds a payment may be valid. */
  readonly seconds: number
  /** The header of a payment with this payload. */
  readonly header: (payload: JsonObject) => string
}

/** What a process asks for a route in one way to pay. */
export function demandOf(protocol: Protocol, route: Route, way: Way): Demand {
  const challenge = protocol.challenge(route, quoteCall(route.operation, {}).amount)
  const demand = challenge?.demand({ resource: BASE_URL + route.path, scope: '', error: 'payment_required' })
  const offers = demand?.content['accepts']
  const accepted = Array.isArray(offers)
    ? offers.filter(isJsonObject).find(({ scheme = '', network = '' }) => wayOf({ scheme, network }) === way)
    : undefined
  if (demand === undefined || !isJsonObject(accepted)) throw new Error(`${way} is not offered`)
  const extensions = { redelivery: redeliveryOf(demand.content) }
  return {
    accepted,
    amount: BigInt(textOf(accepted['amount'])),
    seconds: Number(accepted['maxTimeoutSeconds']),
    header: (payload) => {
      const resource = { url: BASE_URL + route.path }
      const sent: JsonObject = { x402Version: 2, resource, accepted, payload, extensions }
      return Buffer.from(JSON.stringify(sent)).toString('base64')
    },
  }
}

/** Signs a transfer of exactly what is asked for, and lets the chain know what was signed. */
export function signExact(
  chain: SimulatedChain,
  { accepted, amount, seconds, header }: Demand,
  { key, address }: Wallet,
  random: Random,
  now: number,
): SignedPayment {
  const authorization = {
    from: address,
    to: toChecksum(textOf(accepted['payTo'])),
    value: amount.toString(),
    validAfter: '0',
    validBefore: String(Math.floor(now / 1000) + seconds),
    nonce: random.hex(32),
  }
  const { nonce } = authorization
  const signature = signDigest(key, authorizationDigest(BASE, authorization))
  chain.contracts.know(fieldsOf(authorization), signature)
  return {
    header: header({ signature, authorization }),
    key: paymentKey(BASE, { from: address, nonce }),
    nonce,
    name: nonce.slice(2, 8),
  }
}

/** Signs a permit of at most what is asked for. */
export function signUpto(
  chain: SimulatedChain,
  { accepted, amount, seconds, header }: Demand,
  { key, address }: Wallet,
  random: Random,
  now: number,
): SignedPayment {
  const extra = isJsonObject(accepted['extra']) ? accepted['extra'] : {}
  const nonce = random.hex(32)
  const permit = {
    from: address,
    token: toChecksum(textOf(accepted['asset'])),
    amount: amount.toString(),
    nonce: BigInt(nonce).toString(),
    deadline: String(Math.floor(now / 1000) + seconds),
    to: toChecksum(textOf(accepted['payTo'])),
    facilitator: toChecksum(textOf(extra['facilitatorAddress'])),
    validAfter: '0',
  }
  const signature = signDigest(key, permitDigest(BASE, permit))
  const { token, deadline, to, facilitator, validAfter } = permit
  const numbers = [amount, BigInt(nonce), BigInt(deadline)].map(word)
  const witness = [word(to), word(facilitator), word(BigInt(validAfter))]
  chain.contracts.know([word(token), ...numbers, ...witness].join(''), signature)
  const permit2Authorization = {
    permitted: { token, amount: permit.amount },
    from: address,
    spender: UPTO_PROXY,
    nonce: permit.nonce,
    deadline,
    witness: { to, facilitator, validAfter },
  }
  return {
    header: header({ signature, permit2Authorization }),
    key: uptoKey(BASE, permit),
    nonce,
    name: nonce.slice(2, 8),
  }
}

/** Signs a transaction that transfers exactly what is asked for, with the block that the offer names, if it names one. */
export function signExactSvm(
  chain: SimulatedSvmChain,
  { accepted, amount, header }: Demand,
  { address, sign }: SvmAccount,
  random: Random,
): SignedPayment {
  const extra = isJsonObject(accepted['extra']) ? accepted['extra'] : {}
  const { address: mint, decimals } = SOLANA.token
  const message = writeTransferMessage({
    feePayer: textOf(extra['feePayer']),
    owner: address,
    source: tokenAccountOf(address, mint) ?? '',
    destination: tokenAccountOf(textOf(accepted['payTo']), mint) ?? '',
    mint,
    decimals,
    amount,
    memo: random.hex(16),
    blockhash: textOf(extra['recentBlockhash'] ?? chain.hashAt(chain.heightAt(chain.now) - 2)),
  })
  const bytes = Buffer.concat([Uint8Array.of(2), new Uint8Array(64), sign(message), message])
  const payload = { transaction: bytes.toString('base64') }
  const read = readSvm({ payload })
  if (read.kind !== 'payload') throw new Error('what is signed can be read')
  const { digest } = read.payload
  return {
    header: header(payload),
    key: svmKey(SOLANA, read.payload),
    nonce: digest,
    name: digest.slice(0, 6),
  }
}

export function textOf(value: Json | undefined): string {
  if (typeof value !== 'string') throw new Error('an offer has texts')
  return value
}

function redeliveryOf({ extensions }: JsonObject): JsonObject {
  const redelivery = isJsonObject(extensions) ? extensions['redelivery'] : undefined
  return isJsonObject(redelivery) ? redelivery : {}
}
