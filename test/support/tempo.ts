import { setTimeout as delay } from 'node:timers/promises'
import { Challenge, Credential } from 'mppx'
import { Mppx, tempo as tempoMethod } from 'mppx/client'
import {
  createClient,
  http,
  keccak256,
  maxUint256,
  parseAbiItem,
  parseSignature,
  publicActions,
  stringToHex,
  type Account as ViemAccount,
} from 'viem'
import { mnemonicToAccount, privateKeyToAccount } from 'viem/accounts'
import { Actions, Transaction } from 'viem/tempo'
import { tempo } from 'viem/tempo/chains'
import { startAnvil } from '../../src/sandbox/anvil.ts'
import { addressOf, randomKey, type Hex } from './payment.ts'

export const TEMPO_CHAIN = 4217
export const PATH_USD = '0x20c0000000000000000000000000000000000000'
/** Pays fees on anvil. */
export const ALPHA_USD = '0x20c0000000000000000000000000000000000001'
const WALLET_BALANCE = 100_000_000n
const RICH = mnemonicToAccount('test test test test test test test test test test test junk')
const FLAGS = ['--network', 'tempo', '--hardfork', 'T3', '--block-time', '1', '--mixed-mining']

/** Atomic units of each token; what is left out is plenty. */
interface Balances {
  readonly pathUsd?: bigint
  readonly alphaUsd?: bigint
}

/** A Tempo chain on this machine, with real transactions of worthless money. */
export interface TempoChain {
  readonly rpcUrl: string
  /** A new wallet with tokens. */
  wallet(balances?: Balances): Promise<Hex>
  /** Sends tokens, for the charge and for fees. */
  fund(to: Hex, balances?: Balances): Promise<void>
  /** Amounts of all transfers of the token to an address, those of one sender if it is named. */
  received(by: string, token?: Hex, from?: Hex): Promise<bigint[]>
  /** One call to the node as it is. */
  ask(method: string, params: readonly unknown[]): Promise<unknown>
  stop(): Promise<void>
}

export async function startTempo(chainId = TEMPO_CHAIN): Promise<TempoChain> {
  const anvil = await startAnvil(chainId, FLAGS)
  const { rpcUrl } = anvil
  const client = clientOf(rpcUrl, RICH, chainId)
  const ask = async (method: string, params: readonly unknown[]): Promise<unknown> => {
    const response = await fetch(rpcUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    const answer = (await response.json()) as { readonly result?: unknown }
    return answer.result
  }
  // The first block is from 1970, and validity is counted from the newest.
  await ask('evm_mine', [])
  let funding: Promise<unknown> = Promise.resolve()
  const fund = async (to: Hex, { pathUsd, alphaUsd }: Balances = {}): Promise<void> => {
    const next = funding.then(async () => {
      for (const [token, amount = WALLET_BALANCE] of [
        [PATH_USD, pathUsd],
        [ALPHA_USD, alphaUsd],
      ] as const)
        if (amount > 0n) await Actions.token.transferSync(client, { token, to, amount })
    })
    funding = next.catch(() => undefined)
    await next
  }
  return {
    rpcUrl,
    ask,
    fund,
    wallet: async (balances) => {
      const key = randomKey()
      await fund(addressOf(key), balances)
      return key
    },
    received: async (by, token = PATH_USD, from) => {
      const event = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 amount)')
      const args = { to: hex(by), ...(from === undefined ? {} : { from }) }
      const logs = await client.getLogs({ address: token, event, args, fromBlock: 0n, strict: true })
      return logs.map(({ args: { amount } }) => amount)
    },
    stop: () => anvil.stop(),
  }
}

export function clientOf(rpcUrl: string, account: ViemAccount, id = TEMPO_CHAIN) {
  const chain = { ...tempo, id, rpcUrls: { default: { http: [rpcUrl] } } }
  return createClient({ account, chain, transport: http(rpcUrl, { retryCount: 0 }) }).extend(publicActions)
}

/** `mppx/client` as it comes from the registry, with nothing set but wallet and chain; `transport` carries its requests. */
export function stockPayer(
  rpcUrl: string,
  account: ViemAccount,
  transport: typeof fetch = fetch,
  chainId = TEMPO_CHAIN,
) {
  const method = tempoMethod.charge({ account, getClient: () => clientOf(rpcUrl, account, chainId) })
  return Mppx.create({ polyfill: false, methods: [method], fetch: transport })
}

/** The same for the key of a wallet. */
export function stockPayerOf(rpcUrl: string, key: Hex) {
  return stockPayer(rpcUrl, privateKeyToAccount(key))
}

/** What `mppx/client` sends for a challenge of ours, given as a 402. */
export function payAs(rpcUrl: string, account: ViemAccount, challenge: EchoedChallenge): Promise<string> {
  const headers = { 'WWW-Authenticate': Challenge.serialize(challenge) }
  return stockPayer(rpcUrl, account).createCredential(new Response('', { status: 402, headers }))
}

export type EchoedChallenge = Challenge.Challenge

/** What a GET without a payment is asked for by MPP. */
export async function mppChallengeOf(url: string): Promise<EchoedChallenge> {
  const response = await fetch(url)
  await response.body?.cancel()
  return Challenge.fromResponse(response)
}

/** Possible faults of a transaction; omitted parts are valid. */
export interface TransactionFaults {
  readonly amount?: bigint
  readonly to?: Hex
  readonly token?: Hex
  /** null: a plain transfer. */
  readonly memo?: Hex | null
  readonly validBefore?: number | null
  /** Transfers in the transaction. */
  readonly times?: number
  /** A second transfer, after the one that pays. */
  readonly sweep?: { readonly to: Hex; readonly amount: bigint }
  readonly feeToken?: Hex
  readonly feePayer?: true
  readonly chainId?: number
  /** Its sequence and its place in it, in place of an expiring nonce. */
  readonly nonceKey?: bigint
  readonly nonce?: number
  readonly validAfter?: number
  readonly gas?: bigint
  readonly maxFeePerGas?: bigint
  readonly maxPriorityFeePerGas?: bigint
}

/** Signs a transfer for a challenge, correct but for `faults`; resolves to the value of Authorization. */
export async function signTempo(
  rpcUrl: string,
  key: Hex,
  challenge: EchoedChallenge,
  faults: TransactionFaults = {},
): Promise<string> {
  return credentialOf(challenge, await signTransfer(rpcUrl, key, challenge, faults))
}

export async function signTransfer(
  rpcUrl: string,
  key: Hex,
  challenge: EchoedChallenge,
  faults: TransactionFaults = {},
): Promise<Hex> {
  const account = privateKeyToAccount(key)
  const client = clientOf(rpcUrl, account)
  const { amount, recipient, currency } = challenge.request as Readonly<Record<string, string>>
  const memo = faults.memo === undefined ? memoFor(challenge) : faults.memo
  const call = Actions.token.transfer.call(client, {
    amount: faults.amount ?? BigInt(amount ?? 0),
    to: faults.to ?? hex(recipient ?? ''),
    token: faults.token ?? hex(currency ?? ''),
    ...(memo === null ? {} : { memo }),
  })
  const sweep =
    faults.sweep === undefined
      ? []
      : [Actions.token.transfer.call(client, { ...faults.sweep, token: faults.token ?? hex(currency ?? '') })]
  const validBefore =
    faults.validBefore === undefined ? Math.floor(Date.now() / 1000) + 25 : faults.validBefore
  const transaction = {
    type: 'tempo',
    chainId: faults.chainId ?? TEMPO_CHAIN,
    calls: [...Array.from({ length: faults.times ?? 1 }, () => call), ...sweep],
    gas: faults.gas ?? 1_000_000n,
    feeToken: faults.feeToken ?? ALPHA_USD,
    maxFeePerGas: faults.maxFeePerGas ?? 30_000_000_000n,
    maxPriorityFeePerGas: faults.maxPriorityFeePerGas ?? 1_000_000_000n,
    // Nonces that expire need an end.
    nonceKey: faults.nonceKey ?? (validBefore === null ? BigInt(randomKey()) >> 8n : maxUint256),
    nonce: faults.nonce ?? 0,
    ...(faults.validAfter === undefined ? {} : { validAfter: faults.validAfter }),
    ...(validBefore === null ? {} : { validBefore }),
    ...(faults.feePayer ? { feePayer: true as const } : {}),
  } as const
  const hash = keccak256(await Transaction.serialize(transaction))
  return Transaction.serialize(transaction, parseSignature(await account.sign({ hash })))
}

export function credentialOf(challenge: EchoedChallenge, signature: Hex): string {
  return Credential.serialize({ challenge, payload: { type: 'transaction', signature } })
}

/** The attribution memo of MPP, written from its layout. */
export function memoFor({ id, realm }: Pick<EchoedChallenge, 'id' | 'realm'>): Hex {
  const print = (text: string, bytes: number): string => keccak256(stringToHex(text)).slice(2, 2 + 2 * bytes)
  return `0x${print('mpp', 4)}01${print(realm, 10)}${'00'.repeat(10)}${print(id, 7)}`
}

/** The JSON of a credential, to be changed and written again. */
export function openCredential(authorization: string): {
  challenge: Record<string, unknown>
  payload: Record<string, unknown>
} {
  return JSON.parse(
    Buffer.from(authorization.slice('Payment '.length), 'base64url').toString('utf8'),
  ) as never
}

export function closeCredential(credential: unknown): string {
  return `Payment ${Buffer.from(JSON.stringify(credential)).toString('base64url')}`
}

/** Waits for a block that holds the transaction. */
export async function mined(chain: TempoChain, raw: Hex): Promise<void> {
  while ((await chain.ask('eth_getTransactionReceipt', [keccak256(raw)])) === null) await delay(50)
}

function hex(text: string): Hex {
  return `0x${text.slice(2)}`
}
