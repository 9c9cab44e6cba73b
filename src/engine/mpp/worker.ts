import { parentPort, workerData } from 'node:worker_threads'
import { Challenge, Credential, Errors } from '../../vendor/mppx.ts'
import { Mppx, tempo } from '../../vendor/mppx-server.ts'
import {
  createClient,
  http,
  type Client,
  BaseError,
  concatHex,
  decodeFunctionData,
  fromRlp,
  HttpRequestError,
  InternalRpcError,
  isHex,
  keccak256,
  LimitExceededRpcError,
  numberToHex,
  recoverAddress,
  ResourceUnavailableRpcError,
  RpcError,
  TimeoutError,
  toRlp,
} from '../../vendor/viem.ts'
import { publicKeyToAddress } from '../../vendor/viem-accounts.ts'
import { verifyHash } from '../../vendor/viem-actions.ts'
import { Abis, TokenId, Transaction } from '../../vendor/viem-tempo.ts'
import { tempo as tempoChain } from '../../vendor/viem-tempo-chains.ts'
import { sameAddress, toChecksum, type Address } from '../base/address.ts'
import type { ErrorCode } from '../base/errors.ts'
import { isBoundMemo } from './challenge-memo.ts'
import type { Answer, Answered, Asked, Question, ThreadSettings, Demand } from './transfer-validator.ts'

/** Slower than any healthy node, and less than a question may take. */
const TIMEOUT_MS = 5_000

const settings: ThreadSettings = workerData
const clients = new Map<number, Client>()
const simulate = createSimulation(settings, clientOf)

/** Throws when there is no endpoint for the chain. */
function clientOf(chainId: number): Client {
  const known = clients.get(chainId)
  if (known !== undefined) return known
  const url = settings.rpcUrls[chainId]
  if (url === undefined) throw new Error(`chain ${chainId} has no RPC endpoint`)
  const chain = { ...tempoChain, id: chainId, rpcUrls: { default: { http: [url] } } }
  const client = createClient({ chain, transport: http(url, { retryCount: 0, timeout: TIMEOUT_MS }) })
  clients.set(chainId, client)
  return client
}

function answer(question: Question): Promise<Answer> {
  switch (question.kind) {
    case 'read': {
      const { transaction, demand } = question
      return readTransaction(clientOf(demand.chainId), transaction, demand)
    }
    case 'simulate':
      return simulate(question.token)
  }
}

parentPort?.on('message', ({ id, question }: Asked) => {
  void answer(question).then((said) => {
    const answered: Answered = { id, answer: said }
    parentPort?.postMessage(answered)
  })
})

/** mppx’s own judgement of a credential, with one call that lets the chain carry the transaction out on trial. */
function createSimulation(
  { realm, secretKeys }: ThreadSettings,
  clientOf: (chainId: number) => Client,
): (token: string) => Promise<Answer> {
  const instances = secretKeys.map((secretKey) => {
    const charge = tempo.charge({
      supportedModes: ['pull'],
      getClient: ({ chainId = 0 }) => clientOf(chainId),
    })
    return { secretKey, mppx: Mppx.create({ realm, secretKey, methods: [charge] }) }
  })
  return async (token) => {
    try {
      const credential = Credential.deserialize(`Payment ${token}`)
      // An instance of mppx knows one secret.
      const instance = instances.find(({ secretKey }) =>
        Challenge.verify(credential.challenge, { secretKey }),
      )
      if (instance === undefined) return refuse('invalid_challenge', 'the challenge was not issued here')
      await instance.mppx.validateCredential(credential)
      return { kind: 'fit' }
    } catch (fault) {
      return isOutage(fault) ? { kind: 'unavailable' } : explain(fault)
    }
  }
}

function explain(fault: unknown): Answer {
  if (fault instanceof Errors.PaymentExpiredError)
    return refuse('payment_expired', 'the challenge has expired')
  if (fault instanceof Errors.PaymentError)
    return refuse('verification_failed', 'the transaction does not pay this challenge')
  return refuse(
    'verification_failed',
    'the network would not carry the transaction out: the payer needs the amount and the fee on top of it',
  )
}

function refuse(code: ErrorCode, detail: string): Answer {
  return { kind: 'refused', refusal: { code, detail } }
}

type TempoTransaction = Transaction.TransactionSerializableTempo

/**
 * Reads a transaction, and refuses it when it does not pay the demand or its sender has not signed it. Local for the
 * usual key; keys that only the chain knows take one call.
 */
async function readTransaction(client: Client, sent: `0x${string}`, demand: Demand): Promise<Answer> {
  const transaction = parse(sent)
  if (transaction === undefined) return unfit('it is not a signed Tempo transaction (type 0x76)')
  const { from, chainId, validBefore, nonce = 0, nonceKey = 0n, gas = 0n, maxFeePerGas = 0n } = transaction
  // A sender who leaves the fee to a sponsor has not signed the final transaction.
  if (transaction.feePayerSignature !== undefined)
    return unfit('it leaves its fee to somebody else; the payer pays the fee')
  if (from === undefined) return unfit('its signature cannot be read')
  if (chainId !== demand.chainId) return unfit(`it was made for another chain than ${demand.chainId}`)
  if (validBefore === undefined) return unfit('it has no validBefore')
  const reason = checkCalls(transaction, demand)
  if (reason !== undefined) return unfit(reason)
  try {
    const raw = await Transaction.serialize(transaction)
    if (!(await hasSigned(client, transaction, from, raw))) return unfit('its sender has not signed it')
    const { calls } = transaction
    const call = calls.length === 1 ? calls[0]?.data : undefined
    return {
      kind: 'transfer',
      transfer: {
        raw,
        hash: keccak256(raw),
        payer: toChecksum(from),
        validBefore,
        nonce: BigInt(nonce),
        nonceKey: BigInt(nonceKey),
        gas,
        maxFeePerGas,
        feeToken: feeTokenOf(transaction),
        accessKey: await accessKeyOf(transaction, raw),
        call,
        trial: undefined,
      },
    }
  } catch (fault) {
    return isOutage(fault) ? { kind: 'unavailable' } : unfit('its signature cannot be verified')
  }
}

function parse(sent: `0x${string}`): TempoTransaction | undefined {
  if (!isTempo(sent)) return undefined
  try {
    return Transaction.deserialize(sent)
  } catch {
    return undefined
  }
}

function isTempo(sent: string): sent is `0x76${string}` {
  return sent.startsWith('0x76')
}

/** Exactly one transfer as demanded; mppx judges the other calls, and accepts a swap before the transfer. */
function checkCalls({ calls }: TempoTransaction, demand: Demand): string | undefined {
  const { currency, recipient, amount, realm, challengeId } = demand
  const transfers = calls
    .filter(({ to }) => to !== undefined && to !== null && sameAddress(to, currency))
    .flatMap(({ data }) => decodeTransfer(data) ?? [])
  const fitting = transfers.filter(
    (each) => sameAddress(each.to, recipient) && each.amount.toString() === amount,
  )
  if (fitting.length === 0)
    return 'it does not transfer the exact amount of the currency to the recipient, with a memo'
  if (fitting.length > 1) return 'it makes the transfer more than once'
  const bound = fitting.every(({ memo }) => isBoundMemo(memo, realm, challengeId))
  return bound ? undefined : 'its memo is not bound to this challenge'
}

function decodeTransfer(
  data: `0x${string}` | undefined,
): { readonly to: string; readonly amount: bigint; readonly memo: string } | undefined {
  if (data === undefined) return undefined
  try {
    const { functionName, args } = decodeFunctionData({ abi: Abis.tip20, data })
    if (functionName !== 'transferWithMemo') return undefined
    const [to, amount, memo] = args
    return { to, amount, memo }
  } catch {
    return undefined
  }
}

/**
 * The address of an ordinary key is recovered from the signature, so it has signed. Passkeys carry their public key, and
 * access keys name the account they act for: neither has been shown before the signature is verified, and the access
 * key’s right is asked of the chain.
 */
async function hasSigned(
  client: Client,
  { signature }: TempoTransaction,
  address: `0x${string}`,
  raw: `0x${string}`,
): Promise<boolean> {
  if (signature?.type === 'secp256k1') return true
  const parts = signatureOf(raw)
  return parts !== undefined && verifyHash(client, { address, ...parts, mode: 'allowAccessKey' })
}

/** The signature of a transaction, and the hash that it signs. */
function signatureOf(
  raw: `0x${string}`,
): { readonly hash: `0x${string}`; readonly signature: `0x${string}` } | undefined {
  const fields = fromRlp(`0x${raw.slice(4)}`, 'hex')
  const signature = fields.at(-1)
  if (!Array.isArray(fields) || !isHex(signature)) return undefined
  return { hash: keccak256(concatHex(['0x76', toRlp(fields.slice(0, -1))])), signature }
}

/**
 * The access key that has signed for an account; undefined when the account has signed itself. Throws for an unknown
 * kind of key.
 */
async function accessKeyOf(
  { signature }: TempoTransaction,
  raw: `0x${string}`,
): Promise<Address | undefined> {
  if (signature?.type !== 'keychain') return undefined
  const { inner, userAddress, version } = signature
  if (inner.type === 'p256' || inner.type === 'webAuthn') {
    const point = [inner.publicKey.x, inner.publicKey.y].map((each) => numberToHex(each, { size: 32 }))
    return toChecksum(publicKeyToAddress(concatHex(['0x04', ...point])))
  }
  const signed = signatureOf(raw)
  if (inner.type !== 'secp256k1' || signed === undefined) throw new TypeError('no kind of access key')
  const hash = version === 'v1' ? signed.hash : keccak256(concatHex(['0x04', signed.hash, userAddress]))
  const { r, s, yParity } = inner.signature
  const parts = { r: numberToHex(r, { size: 32 }), s: numberToHex(s, { size: 32 }), yParity }
  return toChecksum(await recoverAddress({ hash, signature: parts }))
}

/** A token is named by its address, or by the number at the end of it. */
function feeTokenOf({ feeToken }: TempoTransaction): Address | undefined {
  if (feeToken === undefined) return undefined
  return toChecksum(typeof feeToken === 'bigint' ? TokenId.toAddress(feeToken) : feeToken)
}

function unfit(reason: string): Answer {
  return refuse('verification_failed', `the transaction is not taken: ${reason}`)
}

/** Whether the node could not be asked, or could not say: nothing is wrong with the payment then. */
function isOutage(fault: unknown): boolean {
  return fault instanceof BaseError && fault.walk(isOwnTrouble) !== null
}

function isOwnTrouble(fault: unknown): boolean {
  if (fault instanceof HttpRequestError || fault instanceof TimeoutError) return true
  if (fault instanceof LimitExceededRpcError || fault instanceof ResourceUnavailableRpcError) return true
  if (fault instanceof InternalRpcError) return !ABOUT_PAYMENT.test(fault.details)
  return fault instanceof RpcError && LOST_STATE.test(fault.details)
}

/** Tempo nodes give the payer’s mistakes as internal errors too. */
const ABOUT_PAYMENT = /revert|transaction|nonce|valid_before|balance|funds/i

/** A node that lacks the block it is asked about. */
const LOST_STATE = /(?:header|block|state) not (?:found|available)|unknown block|missing trie/i
