import {
  BatchSettlementEvmScheme,
  buildChannelConfig,
  computeChannelId,
  createBatchSettlementEIP3009DepositPayload,
  signVoucher,
} from '@x402/evm/batch-settlement/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { fileURLToPath } from 'node:url'
import {
  createPublicClient,
  createTestClient,
  createWalletClient,
  decodeFunctionData,
  http,
  parseAbi,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { CHANNELS } from '../../src/engine/base/channel-contracts.ts'
import type { JsonObject } from '../../src/engine/base/json.ts'
import { base } from './base-chain.ts'
import { challengeOf, randomKey, type Hex } from './payment.ts'
import { receiptOf } from './receipt-of.ts'
import { randomHex } from './random.ts'
import { runProgram } from './server.ts'
import { openShop, type Shop } from './shop.ts'
import { PERMIT2 } from './upto.ts'

const CATALOG = fileURLToPath(new URL('../fixtures/channels/catalog.yaml', import.meta.url))
export const CHANNEL_HANDLERS = fileURLToPath(new URL('../fixtures/channels/handlers', import.meta.url))

const CONTRACT = parseAbi([
  'function channels(bytes32 id) view returns (uint128 balance, uint128 totalClaimed)',
  'function receivers(address receiver, address token) view returns (uint128 totalClaimed, uint128 totalSettled)',
])

/** A shop that is paid through channels, with the key that signs its claims. */
export interface ChannelShop extends Shop {
  readonly authorizerKey: Hex
  /** Lets so many seconds pass on the chain. */
  travel(seconds: number): Promise<void>
}

export async function openChannelShop(
  more: Readonly<Record<string, string>> = {},
  args: readonly string[] = ['--handlers', CHANNEL_HANDLERS],
): Promise<ChannelShop> {
  const authorizerKey = randomKey()
  const shop = await openShop(async () => ({ CATALOG, CHANNEL_AUTHORIZER_KEY: authorizerKey, ...more }), args)
  const client = createTestClient({ mode: 'anvil', chain: base, transport: http(shop.chain.rpcUrl) })
  const travel = async (seconds: number): Promise<void> => {
    await client.increaseTime({ seconds })
    await client.mine({ blocks: 1 })
  }
  // The shop reads its address anew after a restart.
  return Object.create(shop, {
    authorizerKey: { value: authorizerKey },
    travel: { value: travel },
  }) as ChannelShop
}

/** The client of the x402 SDK as it comes from the registry, with a node of its own; it keeps the state of its channel. */
export function openChannelClient(key: Hex, rpcUrl: string) {
  const chain = createPublicClient({ chain: base, transport: http(rpcUrl) })
  const account = privateKeyToAccount(key)
  const signer = {
    address: account.address,
    signTypedData: account.signTypedData,
    readContract: chain.readContract,
  }
  const scheme = new BatchSettlementEvmScheme(signer as never)
  return { scheme, client: new x402Client().register('eip155:*', scheme) }
}

/** The same, with a fetch that pays. */
export function channelClient(key: Hex, rpcUrl: string, transport: typeof fetch = fetch) {
  const { scheme, client } = openChannelClient(key, rpcUrl)
  return { scheme, fetch: wrapFetchWithPayment(transport, client) as typeof fetch }
}

/** What the contract has, independently of the service. */
export function contractReader(rpcUrl: string) {
  const chain = createPublicClient({ chain: base, transport: http(rpcUrl) })
  return {
    channel: async (id: Hex) => {
      const [balance, claimed] = await chain.readContract({
        address: CHANNELS,
        abi: CONTRACT,
        functionName: 'channels',
        args: [id],
      })
      return { balance, claimed }
    },
    receiver: async (receiver: Hex, token: Hex) => {
      const [claimed, settled] = await chain.readContract({
        address: CHANNELS,
        abi: CONTRACT,
        functionName: 'receivers',
        args: [receiver, token],
      })
      return { claimed, settled }
    },
  }
}

/** Possible faults of a deposit by Permit2; omitted parts are valid. */
export interface PermitDepositFaults {
  /** Signs it in the place of the payer. */
  readonly key?: Hex
  readonly channelId?: Hex
  readonly spender?: Hex
  readonly token?: Hex
  readonly amount?: number
  readonly chainId?: number
  readonly nonce?: bigint
  readonly deadline?: bigint
  /** The extensions of the payment. */
  readonly extensions?: JsonObject
}

/** Written out, and not taken from the code under test. */
const PERMIT_COLLECTOR = '0x4020425FAf3B746C082C2f942b4E5159887B0005'
const PERMIT_TYPES = {
  PermitWitnessTransferFrom: [
    { name: 'permitted', type: 'TokenPermissions' },
    { name: 'spender', type: 'address' },
    { name: 'nonce', type: 'uint256' },
    { name: 'deadline', type: 'uint256' },
    { name: 'witness', type: 'DepositWitness' },
  ],
  TokenPermissions: [
    { name: 'token', type: 'address' },
    { name: 'amount', type: 'uint256' },
  ],
  DepositWitness: [{ name: 'channelId', type: 'bytes32' }],
} as const

/** A channel of one payer, whose payments a test makes by hand. */
export interface HandmadeChannel {
  readonly id: Hex
  readonly config: ReturnType<typeof buildChannelConfig>
  /** The header of a payment; `ceiling` in atomic units. */
  voucher(ceiling: number, change?: (payload: Record<string, unknown>) => void): Promise<string>
  deposit(ceiling: number, amount: number): Promise<string>
  /** A deposit by Permit2, faultless but for `faults`. */
  permit(ceiling: number, amount: number, faults?: PermitDepositFaults): Promise<string>
  refund(ceiling: number, amount?: number): Promise<string>
  /** Calls the contract as the payer. */
  call(name: 'initiateWithdraw' | 'finalizeWithdraw', amount?: bigint): Promise<void>
}

const PAYER_CALLS = parseAbi([
  'struct ChannelConfig { address payer; address payerAuthorizer; address receiver; address receiverAuthorizer; address token; uint40 withdrawDelay; bytes32 salt; }',
  'function initiateWithdraw(ChannelConfig config, uint128 amount)',
  'function finalizeWithdraw(ChannelConfig config)',
])

/** In ten minutes, in seconds since the epoch. */
const soon = (): bigint => BigInt(Math.floor(Date.now() / 1000) + 600)

/** Makes payments with the functions of the SDK, for the offer of a path. */
export async function handmade(
  shop: ChannelShop,
  key: Hex,
  path = '/paid/work',
  changes: { readonly payer?: Hex; readonly payerAuthorizer?: Hex; readonly salt?: Hex } = {},
): Promise<HandmadeChannel> {
  const account = privateKeyToAccount(key)
  const { accepts, resource } = await challengeOf(shop.url + path)
  const accepted = accepts.find(({ scheme }) => scheme === 'batch-settlement')
  if (accepted === undefined) throw new Error('no channel is offered')
  const salt = changes.salt ?? (`0x${'0'.repeat(64)}` as const)
  const built = buildChannelConfig({ signer: account, salt } as never, accepted as never)
  const config = { ...built, ...changes }
  const id = computeChannelId(config, accepted.network)
  const header = (payload: unknown, extensions?: JsonObject): string =>
    Buffer.from(JSON.stringify({ x402Version: 2, resource, accepted, payload, extensions })).toString(
      'base64',
    )
  const voucherFor = (ceiling: number) => signVoucher(account as never, id, String(ceiling), accepted.network)
  return {
    id,
    config,
    voucher: async (ceiling, change) => {
      const payload = { type: 'voucher', channelConfig: config, voucher: await voucherFor(ceiling) }
      change?.(payload)
      return header(payload)
    },
    deposit: async (ceiling, amount) => {
      const made = await createBatchSettlementEIP3009DepositPayload(
        account as never,
        2,
        accepted as never,
        config,
        String(amount),
        String(ceiling),
      )
      return header(made.payload)
    },
    permit: async (ceiling, amount, faults = {}) => {
      const { chainId = 8453, nonce = BigInt(randomHex()), deadline = soon(), extensions } = faults
      const permitted = { token: faults.token ?? config.token, amount: BigInt(faults.amount ?? amount) }
      const witness = { channelId: faults.channelId ?? id }
      const spender = faults.spender ?? PERMIT_COLLECTOR
      const signature = await privateKeyToAccount(faults.key ?? key).signTypedData({
        domain: { name: 'Permit2', chainId, verifyingContract: PERMIT2 },
        types: PERMIT_TYPES,
        primaryType: 'PermitWitnessTransferFrom',
        message: { permitted, spender, nonce, deadline, witness },
      })
      const permit2Authorization = {
        from: config.payer,
        permitted: { ...permitted, amount: `${permitted.amount}` },
        spender,
        nonce: `${nonce}`,
        deadline: `${deadline}`,
        witness,
        signature,
      }
      const voucher = await voucherFor(ceiling)
      const deposit = { amount: `${amount}`, authorization: { permit2Authorization } }
      return header({ type: 'deposit', channelConfig: config, voucher, deposit }, extensions)
    },
    refund: async (ceiling, amount) => {
      const sum = amount === undefined ? {} : { amount: String(amount) }
      return header({ type: 'refund', channelConfig: config, voucher: await voucherFor(ceiling), ...sum })
    },
    call: async (name, amount = 0n) => {
      await shop.chain.setGas(account.address, 10n ** 18n)
      const wallet = createWalletClient({ account, chain: base, transport: http(shop.chain.rpcUrl) })
      const chain = createPublicClient({ chain: base, transport: http(shop.chain.rpcUrl) })
      const write = { address: CHANNELS, abi: PAYER_CALLS } as const
      const hash =
        name === 'initiateWithdraw'
          ? await wallet.writeContract({ ...write, functionName: name, args: [config as never, amount] })
          : await wallet.writeContract({ ...write, functionName: name, args: [config as never] })
      await receiptOf(chain, hash)
    },
  }
}

/** Sends a payment by hand. */
export function send(shop: Pick<ChannelShop, 'url'>, path: string, header: string): Promise<Response> {
  return fetch(shop.url + path, { headers: { 'PAYMENT-SIGNATURE': header } })
}

const DEPOSIT = parseAbi([
  'struct ChannelConfig { address payer; address payerAuthorizer; address receiver; address receiverAuthorizer; address token; uint40 withdrawDelay; bytes32 salt; }',
  'function deposit(ChannelConfig config, uint128 amount, address collector, bytes collectorData)',
])

/** Gives the caller what it asks for of its own tokens, no matter who is said to pay. */
const FOREIGN_COLLECTOR =
  '0x63a9059cbb60e01b600052336004526044356024526000600060446000600060243' + '55af15000'

/** Deposits into a channel with money of somebody else, through a collector of his own. */
export async function fundByStranger(
  { chain: { rpcUrl, ...chain } }: ChannelShop,
  config: HandmadeChannel['config'],
  amount: bigint,
): Promise<void> {
  const stranger = privateKeyToAccount(randomKey())
  const collector = privateKeyToAccount(randomKey()).address
  await chain.setCode(collector, FOREIGN_COLLECTOR as Hex)
  await chain.setGas(stranger.address, 10n ** 18n)
  await chain.mint(collector, amount)
  const wallet = createWalletClient({ account: stranger, chain: base, transport: http(rpcUrl) })
  const hash = await wallet.writeContract({
    address: CHANNELS,
    abi: DEPOSIT,
    functionName: 'deposit',
    args: [config as never, amount, collector, '0x'],
  })
  const node = createPublicClient({ chain: base, transport: http(rpcUrl) })
  await receiptOf(node, hash)
}

const CLAIM = parseAbi([
  'struct ChannelConfig { address payer; address payerAuthorizer; address receiver; address receiverAuthorizer; address token; uint40 withdrawDelay; bytes32 salt; }',
  'struct Voucher { ChannelConfig channel; uint128 maxClaimableAmount; }',
  'struct VoucherClaim { Voucher voucher; bytes signature; uint128 totalClaimed; }',
  'function claimWithSignature(VoucherClaim[] claims, bytes signature)',
  'event Claimed(bytes32 indexed channelId, address indexed sender, uint128 claimAmount, uint128 newTotalClaimed)',
])

/** A voucher as everybody can read it. */
export interface PublishedVoucher {
  readonly ceiling: number
  readonly signature: Hex
}

/** The last voucher of a channel in the calldata of a claim, as an observer of the chain reads it. */
export async function publishedVoucher(rpcUrl: string, id: Hex): Promise<PublishedVoucher> {
  const chain = createPublicClient({ chain: base, transport: http(rpcUrl) })
  const [, event] = CLAIM
  const logs = await chain.getLogs({ address: CHANNELS, event, args: { channelId: id }, fromBlock: 0n })
  const hash = logs.at(-1)?.transactionHash
  if (hash === undefined) throw new Error('the channel is not claimed')
  const { input } = await chain.getTransaction({ hash })
  const { functionName, args } = decodeFunctionData({ abi: CLAIM, data: input })
  if (functionName !== 'claimWithSignature') throw new Error('this is no claim')
  const [claims] = args
  const row = claims.find(({ voucher }) => computeChannelId(voucher.channel, `eip155:${base.id}`) === id)
  if (row === undefined) throw new Error('the claim is of other channels')
  return { ceiling: Number(row.voucher.maxClaimableAmount), signature: row.signature }
}

/** What a command needs to work for the shop. */
export function shopEnvironment(
  shop: ChannelShop,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  return {
    CATALOG,
    BASE_URL: shop.baseUrl,
    PAY_TO: shop.payTo,
    SETTLER_PRIVATE_KEY: shop.signerKey,
    RPC_URL_8453: shop.node.url,
    CHANNEL_AUTHORIZER_KEY: shop.authorizerKey,
    ...more,
  }
}

/** `ratecard payments claim`, as an operator runs it. */
export function claimNow(shop: ChannelShop, more: Readonly<Record<string, string>> = {}) {
  return runProgram(['payments', 'claim', '--data-dir', shop.server.dataDir], shopEnvironment(shop, more))
}

interface ChannelRow {
  readonly charged: string
  readonly claimed: string
  readonly unclaimed: string
  readonly state: string
}

/** `ratecard payments list --channels`. */
export async function listChannels(
  shop: ChannelShop,
  more: Readonly<Record<string, string>> = {},
): Promise<readonly ChannelRow[]> {
  const args = ['payments', 'list', '--channels', '--json', '--data-dir', shop.server.dataDir]
  const { stdout } = await runProgram(args, shopEnvironment(shop, more))
  return JSON.parse(stdout) as readonly ChannelRow[]
}
