import { systemEvery } from '../../src/engine/base/every.ts'
import { setTimeout as delay } from 'node:timers/promises'
import { createTestClient, encodeFunctionData, http, parseAbi, publicActions, walletActions } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { toChecksum } from '../../src/engine/base/address.ts'
import type { Dispatch, OwnTransaction } from '../../src/engine/ledger/payment-record.ts'
import type { Ledger } from '../../src/engine/ledger/ledger.ts'
import type { Limits } from '../../src/engine/base/networks.ts'
import { Chain } from '../../src/engine/chains/evm/chain.ts'
import type { Journal, Settlement } from '../../src/engine/payment/settlement.ts'
import { settle } from '../../src/engine/x402/exact-evm/own-settler.ts'
import { orderOf } from '../../src/engine/x402/exact-evm/preflight.ts'
import { openContext, type SettlementContext } from '../../src/engine/x402/exact-evm/settlement-context.ts'
import type { Authorization } from '../../src/engine/chains/evm/eip3009/authorization.ts'
import { BY_AUTHORIZATION, type ExpectedPayment } from '../../src/engine/chains/evm/transfer-proof.ts'
import type { EvmChain } from '../../src/sandbox/evm/chain.ts'
import { addressOf, inTexts, randomKey, sign, type Challenge, type Faults, type Hex } from './payment.ts'
import { receiptOf } from './receipt-of.ts'
import { networkNamed, PAY_TO } from './shipped-catalog.ts'
import { base } from './base-chain.ts'

export const BASE = networkNamed('base')

export interface SettlementOptions {
  readonly ledger: Ledger
  /** The way to the node; directly, when it is left out. */
  readonly url?: string
  readonly keys?: readonly Hex[]
  readonly limits?: Partial<Limits>
  readonly owner?: string
}

/** A settlement context in which waiting takes no time: its clock runs ahead instead. */
export interface QuickSettlementContext extends SettlementContext {
  /** Lines for the operator so far. */
  readonly reported: string[]
  readonly signerKeys: readonly Hex[]
  /** Advances the clock. */
  readonly wait: (ms: number) => void
}

export async function openSettlementContext(
  chain: EvmChain,
  options: SettlementOptions,
): Promise<QuickSettlementContext> {
  const { ledger, url = chain.rpcUrl, keys = [randomKey()], limits = {}, owner = 'one' } = options
  const reported: string[] = []
  let ahead = 0
  const now = (): number => Date.now() + ahead
  const sleep = async (ms: number): Promise<void> => {
    ahead += ms
    await delay(1)
  }
  const report = (line: string): number => reported.push(line)
  const node = new Chain(url, fetch)
  for (const key of keys) await chain.setGas(addressOf(key), 10n ** 18n)
  const context = await openContext({
    chain: node,
    network: BASE,
    signerKeys: keys,
    ledger,
    owner,
    now,
    sleep,
    every: systemEvery,
    report,
  })
  return {
    ...context,
    limits: { ...BASE.limits, ...limits },
    reported,
    signerKeys: keys,
    wait: (ms) => (ahead += ms),
  }
}

/** An authorization as a buyer has signed it. */
export interface Signed {
  readonly key: Hex
  readonly expected: ExpectedPayment
  readonly authorization: Authorization
  readonly signature: Hex
}

const OFFER: Challenge = {
  x402Version: 2,
  error: 'payment_required',
  resource: { url: 'https://api.example.com/paid/work' },
  accepts: [
    {
      scheme: 'exact',
      network: BASE.id,
      amount: '10000',
      asset: BASE.token.address,
      payTo: PAY_TO,
      maxTimeoutSeconds: 60,
      extra: { name: BASE.token.name, version: BASE.token.version },
    },
  ],
  extensions: {},
}

/** Signs a payment of 10,000 from a funded wallet of its own. */
export async function authorize(chain: EvmChain, key = randomKey(), faults: Faults = {}): Promise<Signed> {
  await chain.mint(faults.from ?? addressOf(key), 10_000n)
  const { authorization, signature } = await sign(OFFER, key, faults)
  const { from, to, value, nonce } = authorization
  return {
    key,
    expected: {
      token: BASE.token.address,
      from: toChecksum(from),
      to: toChecksum(to),
      value,
      nonce,
      proof: BY_AUTHORIZATION,
    },
    authorization: inTexts(authorization),
    signature,
  }
}

export interface Recorder extends Journal {
  readonly dispatches: Dispatch[]
}

export function newRecorder(): Recorder {
  const dispatches: Dispatch[] = []
  return {
    dispatches,
    record: async (dispatch) => {
      dispatches.push(dispatch)
    },
  }
}

/** The transaction of ours that was recorded last. */
export function recorded({ dispatches }: Recorder): OwnTransaction {
  const last = dispatches.at(-1)
  if (last?.kind !== 'own') throw new Error('nothing was recorded')
  return last
}

export function settleOn(
  context: SettlementContext,
  { expected, authorization, signature }: Signed,
  journal: Journal = newRecorder(),
): Promise<Settlement> {
  const order = orderOf(context, expected, { authorization, signature, signedBy: 'key' })
  return settle(context, order, journal)
}

const TOKEN = parseAbi([
  'function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
])

const CANCEL = {
  CancelAuthorization: [
    { name: 'authorizer', type: 'address' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

/** What other accounts and the network can do to a payment. */
export function openChainControl({ rpcUrl }: Pick<EvmChain, 'rpcUrl'>) {
  const client = createTestClient({
    mode: 'anvil',
    chain: base,
    transport: http(rpcUrl),
    pollingInterval: 20,
    cacheTime: 0,
  })
    .extend(publicActions)
    .extend(walletActions)
  const stranger = privateKeyToAccount(randomKey())
  /** Sends with a fee above all others; resolves when it is in the pool. */
  const rush = async (transaction: { to?: Hex; data: Hex }): Promise<Hex> => {
    await client.setBalance({ address: stranger.address, value: 10n ** 20n })
    const fees = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 11n, gas: 1_000_000n }
    return client.sendTransaction({ account: stranger, ...transaction, ...fees })
  }
  const transfer = ({ authorization, signature }: Signed): Hex => {
    const { from, to, value, validAfter, validBefore, nonce } = authorization
    return encodeFunctionData({
      abi: TOKEN,
      functionName: 'transferWithAuthorization',
      args: [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, signature],
    })
  }
  return {
    client,
    rush,
    /** Submits a payment. */
    submit: (signed: Signed): Promise<Hex> => rush({ to: BASE.token.address, data: transfer(signed) }),
    /** Submits several in one transaction: a contract whose creation makes the calls. */
    submitTogether: (signed: readonly Signed[]): Promise<Hex> =>
      rush({ data: callAll(signed.map(transfer)) }),
    /** Lets the payer's account delegate to a contract with this code (EIP-7702). */
    delegate: async ({ key }: Signed, code: Hex): Promise<Hex> => {
      const contract = addressOf(randomKey())
      await client.setCode({ address: contract, bytecode: code })
      await client.setBalance({ address: stranger.address, value: 10n ** 20n })
      const payer = privateKeyToAccount(key)
      const authorization = await client.signAuthorization({ account: payer, contractAddress: contract })
      return client.sendTransaction({
        account: stranger,
        to: stranger.address,
        authorizationList: [authorization],
        // Above ours, and not so high that the next payments are too expensive.
        maxFeePerGas: 10n ** 10n,
        maxPriorityFeePerGas: 15n * 10n ** 8n,
        gas: 1_000_000n,
      })
    },
    cancel: async ({ key, authorization: { from, nonce } }: Signed): Promise<Hex> => {
      const { token, chainId } = BASE
      const signature = await privateKeyToAccount(key).signTypedData({
        domain: { name: token.name, version: token.version, chainId, verifyingContract: token.address },
        types: CANCEL,
        primaryType: 'CancelAuthorization',
        message: { authorizer: from, nonce },
      })
      const args = [from, nonce, signature] as const
      return rush({
        to: token.address,
        data: encodeFunctionData({ abi: TOKEN, functionName: 'cancelAuthorization', args }),
      })
    },
    /** Sets the base fee from the next block on. */
    setBaseFee: async (gwei: bigint): Promise<void> => {
      await client.setNextBlockBaseFeePerGas({ baseFeePerGas: gwei * 1_000_000_000n })
      await client.mine({ blocks: 1 })
    },
    /** Reverts the newest blocks with their transactions. */
    reorg: (depth: number): Promise<unknown> =>
      client.request({ method: 'anvil_reorg', params: [depth, []] } as never),
    /** Resolves when a block contains the transaction. */
    mined: async (hash: Promise<Hex>): Promise<Hex> => {
      await receiptOf(client, await hash)
      return hash
    },
    mine: (blocks = 1): Promise<void> => client.mine({ blocks }),
    automine: (on: 'on' | 'off'): Promise<void> => client.setAutomine(on === 'on'),
    newest: async (): Promise<number> => Number(await client.getBlockNumber()),
    /** AuthorizationUsed logs of a payer: how often they were charged. */
    charges: async ({ expected: { from } }: Signed): Promise<number> => {
      const logs = await client.getLogs({
        address: BASE.token.address,
        event: parseAbi(['event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)'])[0],
        args: { authorizer: from },
        fromBlock: 0n,
      })
      return logs.length
    },
  }
}

/** Code that calls the token once with each of these and deploys nothing. */
function callAll(calls: readonly Hex[]): Hex {
  const CALL_BYTES = 44
  let offset = calls.length * CALL_BYTES + 1
  const word = (number: number): string => number.toString(16).padStart(4, '0')
  const code = calls.map((data) => {
    const size = (data.length - 2) / 2
    // PUSH2 size, PUSH2 offset, PUSH1 0, CODECOPY
    const load = `61${word(size)}61${word(offset)}600039`
    // Results: none, arguments: the copy, value: 0; PUSH20 token, GAS, CALL, POP
    const call = `6000600061${word(size)}6000600073${BASE.token.address.slice(2)}5af150`
    offset += size
    return load + call
  })
  return `0x${code.join('')}00${calls.map((data) => data.slice(2)).join('')}`
}
