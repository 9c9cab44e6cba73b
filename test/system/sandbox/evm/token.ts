import t from 'tap'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import {
  concat,
  createTestClient,
  createWalletClient,
  domainSeparator,
  http,
  keccak256,
  numberToHex,
  parseAbi,
  parseEventLogs,
  parseSignature,
  hashTypedData,
  publicActions,
  BaseError,
  ContractFunctionRevertedError,
  type Address,
  type Hex,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { startEvmChain } from '../../../../src/sandbox/evm/chain.ts'
import { randomHex } from '../../../support/random.ts'
import { base } from '../../../support/base-chain.ts'
import { TRANSFER_TYPES } from '../../../support/payment.ts'
import channels from '../../../../src/sandbox/evm/channels.json' with { type: 'json' }
import collector from '../../../../src/sandbox/evm/deposit-collector.json' with { type: 'json' }
import permitCollector from '../../../../src/sandbox/evm/permit-collector.json' with { type: 'json' }
import multicall from '../../../../src/sandbox/evm/multicall.json' with { type: 'json' }
import permit2 from '../../../../src/sandbox/evm/permit2.json' with { type: 'json' }
import proxy from '../../../../src/sandbox/evm/proxy.json' with { type: 'json' }
import token from '../../../../src/sandbox/evm/token.json' with { type: 'json' }
import uptoProxy from '../../../../src/sandbox/evm/upto-proxy.json' with { type: 'json' }
import { receiptOf } from '../../../support/receipt-of.ts'

const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const ABI = parseAbi([
  'function name() view returns (string)',
  'function symbol() view returns (string)',
  'function version() view returns (string)',
  'function decimals() view returns (uint8)',
  'function totalSupply() view returns (uint256)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function transfer(address to, uint256 value) returns (bool)',
  'function approve(address spender, uint256 value) returns (bool)',
  'function transferFrom(address from, address to, uint256 value) returns (bool)',
  'function allowance(address owner, address spender) view returns (uint256)',
  'function blacklist(address account)',
  'function pause()',
  'function unpause()',
  'function unBlacklist(address account)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'event Approval(address indexed owner, address indexed spender, uint256 value)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
])
const TYPES = {
  ...TRANSFER_TYPES,
  ReceiveWithAuthorization: TRANSFER_TYPES.TransferWithAuthorization,
  CancelAuthorization: [
    { name: 'authorizer', type: 'address' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const
const DOMAIN = { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: USDC } as const
// A wallet that approves exactly one signature: the digest itself. CALLDATALOAD(4) == CALLDATALOAD(100) ? magic : 0.
const WALLET_CODE = '0x60043560643514631626ba7e60e01b0260005260206000f3'

const chain = await startEvmChain({
  chainId: 8453,
  asset: USDC,
  tokenName: 'USD Coin',
  tokenVersion: '2',
})
t.teardown(() => chain.stop())
const transport = http(chain.rpcUrl)
const client = createTestClient({ mode: 'anvil', chain: base, transport, pollingInterval: 10 }).extend(
  publicActions,
)
const [payer, settler, shop] = [freshAccount(), freshAccount(), freshAccount()]
const walletOf = (account: typeof payer) =>
  createWalletClient({ account, chain: base, transport, pollingInterval: 10 }).extend(publicActions)
for (const account of [payer, settler, shop]) await chain.setGas(account.address, 10n ** 20n)
await chain.mint(payer.address, 1_000_000n)

function freshAccount() {
  return privateKeyToAccount(randomHex())
}

interface Authorization {
  readonly from: Address
  readonly to: Address
  readonly value: bigint
  readonly validAfter: bigint
  readonly validBefore: bigint
  readonly nonce: Hex
}

function authorization(changes: Partial<Authorization> = {}): Authorization {
  return {
    from: payer.address,
    to: shop.address,
    value: 10_000n,
    validAfter: 0n,
    validBefore: 1n << 40n,
    nonce: randomHex(),
    ...changes,
  }
}

const sign = (message: Authorization, signer = payer, domain: object = DOMAIN) =>
  signer.signTypedData({ domain, types: TYPES, primaryType: 'TransferWithAuthorization', message })

const values = (a: Authorization) => [a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce] as const

const target = { address: USDC, abi: ABI } as const

const send = (a: Authorization, signature: Hex) =>
  walletOf(settler).writeContract({
    ...target,
    functionName: 'transferWithAuthorization',
    args: [...values(a), signature],
  })

const tryOut = (a: Authorization, signature: Hex) =>
  client.simulateContract({
    ...target,
    account: settler,
    functionName: 'transferWithAuthorization',
    args: [...values(a), signature],
  })

const mined = (hash: Hex) => receiptOf(client, hash)

async function reason(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt
    return 'no revert'
  } catch (error) {
    const reverted =
      error instanceof BaseError && error.walk((cause) => cause instanceof ContractFunctionRevertedError)
    return reverted instanceof ContractFunctionRevertedError ? String(reverted.reason) : String(error)
  }
}

const isUsed = (a: Authorization) =>
  client.readContract({ ...target, functionName: 'authorizationState', args: [a.from, a.nonce] })

t.test('the committed artifacts equal the compiled Solidity sources', async (t) => {
  for (const [name, { sourceSha256 }] of Object.entries({
    TestUSDC: token,
    Proxy: proxy,
    Multicall: multicall,
    Permit2: permit2,
    UptoProxy: uptoProxy,
    Channels: channels,
    DepositCollector: collector,
    PermitCollector: permitCollector,
  })) {
    const source = readFileSync(new URL(`../../../../src/sandbox/evm/${name}.sol`, import.meta.url))
    t.equal(sourceSha256, createHash('sha256').update(source).digest('hex'), 'otherwise run: npm run token')
  }
})

t.test('shows a client the expected token under the real address', async (t) => {
  t.equal(await client.readContract({ ...target, functionName: 'name' }), 'USD Coin')
  t.equal(await client.readContract({ ...target, functionName: 'symbol' }), 'USDC')
  t.equal(await client.readContract({ ...target, functionName: 'version' }), '2')
  t.equal(await client.readContract({ ...target, functionName: 'decimals' }), 6)
  t.equal(await client.readContract({ ...target, functionName: 'totalSupply' }), 1_000_000n)
  t.equal(
    await client.readContract({ ...target, functionName: 'DOMAIN_SEPARATOR' }),
    domainSeparator({ domain: DOMAIN }),
  )
})

t.test('accepts a signed authorization from any sender, and emits both logs', async (t) => {
  const before = await chain.balance(shop.address)
  const a = authorization()
  const receipt = await mined(await send(a, await sign(a)))
  t.equal(receipt.status, 'success')
  t.comment(`gas of the first transfer to a payee: ${receipt.gasUsed}`)
  t.equal(await chain.balance(shop.address), before + 10_000n)
  t.equal(await isUsed(a), true)
  const logs = parseEventLogs({ abi: ABI, logs: receipt.logs })
  t.same(
    logs.map(({ eventName, args, address }) => ({ eventName, args, address: address.toLowerCase() })),
    [
      {
        eventName: 'AuthorizationUsed',
        args: { authorizer: payer.address, nonce: a.nonce },
        address: USDC.toLowerCase(),
      },
      {
        eventName: 'Transfer',
        args: { from: payer.address, to: shop.address, value: 10_000n },
        address: USDC.toLowerCase(),
      },
    ],
  )
})

t.test('accepts the overload with v, r, s', async (t) => {
  const a = authorization()
  const { r, s, v = 0n } = parseSignature(await sign(a))
  const before = await chain.balance(shop.address)
  const hash = await walletOf(settler).writeContract({
    ...target,
    functionName: 'transferWithAuthorization',
    args: [...values(a), Number(v), r, s],
  })
  const receipt = await mined(hash)
  t.comment(`gas of a later transfer: ${receipt.gasUsed}`)
  t.equal(receipt.status, 'success')
  t.equal(await chain.balance(shop.address), before + 10_000n)
})

t.test('accepts an authorization once', async (t) => {
  const a = authorization()
  const signature = await sign(a)
  await mined(await send(a, signature))
  t.equal(await reason(tryOut(a, signature)), 'FiatTokenV2: authorization is used or canceled')
})

t.test('treats the limits of validity as strict on both sides', async (t) => {
  const { timestamp } = await client.getBlock()
  const at = timestamp + 1_000n
  const before = await chain.balance(shop.address)
  const outcome = async (changes: Partial<Authorization>) => {
    const a = authorization(changes)
    const signature = await sign(a)
    return reason(
      client.simulateContract({
        ...target,
        account: settler,
        functionName: 'transferWithAuthorization',
        args: [...values(a), signature],
        blockOverrides: { time: at },
      }),
    )
  }
  t.equal(await outcome({ validAfter: at }), 'FiatTokenV2: authorization is not yet valid')
  t.equal(await outcome({ validAfter: at - 1n }), 'no revert')
  t.equal(await outcome({ validBefore: at }), 'FiatTokenV2: authorization is expired')
  t.equal(await outcome({ validBefore: at + 1n }), 'no revert')
  t.equal(await chain.balance(shop.address), before)
})

t.test('moves money only by the payer’s signature for this token, chain and amount', async (t) => {
  const a = authorization()
  const refused = 'FiatTokenV2: invalid signature'
  t.equal(await reason(tryOut(a, await sign(a, shop))), refused)
  t.equal(await reason(tryOut(a, await sign(a, payer, { ...DOMAIN, name: 'USDC' }))), refused)
  t.equal(await reason(tryOut(a, await sign(a, payer, { ...DOMAIN, chainId: 1 }))), refused)
  t.equal(await reason(tryOut({ ...a, value: 10_001n }, await sign(a))), refused)
  t.equal(await reason(tryOut({ ...a, to: settler.address }, await sign(a))), refused)
})

t.test('accepts one form of a signature', async (t) => {
  const a = authorization()
  const signature = await sign(a)
  const { r, s, v = 27n } = parseSignature(signature)
  const [otherV, highS] = [
    v === 27n ? '0x1c' : '0x1b',
    numberToHex(CURVE_ORDER - BigInt(s), { size: 32 }),
  ] as const
  t.equal(await reason(tryOut(a, concat([r, highS, otherV]))), "ECRecover: invalid signature 's' value")
  t.equal(
    await reason(tryOut(a, concat([r, s, v === 27n ? '0x00' : '0x01']))),
    "ECRecover: invalid signature 'v' value",
  )
  t.equal(
    await reason(tryOut(a, concat([numberToHex(0, { size: 32 }), s, '0x1b']))),
    'ECRecover: invalid signature',
  )
  t.equal(await reason(tryOut(a, concat([r, s]))), 'ECRecover: invalid signature length')
  t.equal(await reason(tryOut(a, concat([signature, '0x00']))), 'ECRecover: invalid signature length')
  t.equal(await reason(tryOut(a, signature)), 'no revert')
})

t.test('refuses a payer without the money', async (t) => {
  const poor = freshAccount()
  await chain.mint(poor.address, 9_999n)
  const a = authorization({ from: poor.address })
  t.equal(await reason(tryOut(a, await sign(a, poor))), 'ERC20: transfer amount exceeds balance')
  const all = authorization({ from: poor.address, value: 9_999n })
  t.equal(await reason(tryOut(all, await sign(all, poor))), 'no revert')
})

t.test('leaves the authorization unused when a transfer fails', async (t) => {
  const poor = freshAccount()
  const a = authorization({ from: poor.address })
  const signature = await sign(a, poor)
  const hash = await walletOf(settler).writeContract({
    ...target,
    functionName: 'transferWithAuthorization',
    args: [...values(a), signature],
    gas: 200_000n,
  })
  t.equal((await mined(hash)).status, 'reverted')
  t.equal(await isUsed(a), false)
})

t.test('stops transfers of a blacklisted side until it is lifted', async (t) => {
  const a = authorization()
  const signature = await sign(a)
  const write = (functionName: 'blacklist' | 'unBlacklist', account: Address) =>
    walletOf(settler)
      .writeContract({ ...target, functionName, args: [account] })
      .then(mined)
  for (const account of [payer.address, shop.address]) {
    await write('blacklist', account)
    t.equal(await reason(tryOut(a, signature)), 'Blacklistable: account is blacklisted')
    await write('unBlacklist', account)
    t.equal(await reason(tryOut(a, signature)), 'no revert')
  }
})

t.test('moves nothing while it is paused', async (t) => {
  const a = authorization()
  const signature = await sign(a)
  const write = (functionName: 'pause' | 'unpause') =>
    walletOf(settler)
      .writeContract({ ...target, functionName })
      .then(mined)
  await write('pause')
  t.equal(await reason(tryOut(a, signature)), 'Pausable: paused')
  await write('unpause')
  t.equal(await reason(tryOut(a, signature)), 'no revert')
})

t.test('answers everybody but the administrator of its proxy', async (t) => {
  const call = { to: USDC, data: '0x313ce567' } as const
  t.match(await client.call({ ...call, account: settler }), { data: /6$/ })
  const administrator = '0x00000000000000000000000000000000000ad314'
  await t.rejects(client.call({ ...call, account: administrator }), /proxy admin/)
})

t.test('refuses a canceled authorization, which only its owner cancels', async (t) => {
  const cancellation = (a: Authorization, signer = payer) =>
    signer.signTypedData({
      domain: DOMAIN,
      types: TYPES,
      primaryType: 'CancelAuthorization',
      message: { authorizer: a.from, nonce: a.nonce },
    })
  const cancel = (a: Authorization, signature: Hex) =>
    client.simulateContract({
      ...target,
      account: settler,
      functionName: 'cancelAuthorization',
      args: [a.from, a.nonce, signature],
    })
  const a = authorization()
  t.equal(await reason(cancel(a, await cancellation(a, shop))), 'FiatTokenV2: invalid signature')
  const { request } = await cancel(a, await cancellation(a))
  const receipt = await mined(await walletOf(settler).writeContract(request))
  t.same(
    parseEventLogs({ abi: ABI, logs: receipt.logs }).map(({ eventName, args }) => ({ eventName, args })),
    [{ eventName: 'AuthorizationCanceled', args: { authorizer: payer.address, nonce: a.nonce } }],
  )
  t.equal(await isUsed(a), true)
  t.equal(await reason(tryOut(a, await sign(a))), 'FiatTokenV2: authorization is used or canceled')
  t.equal(await reason(cancel(a, await cancellation(a))), 'FiatTokenV2: authorization is used or canceled')

  const other = authorization()
  const { r, s, v = 0n } = parseSignature(await cancellation(other))
  const hash = await walletOf(settler).writeContract({
    ...target,
    functionName: 'cancelAuthorization',
    args: [other.from, other.nonce, Number(v), r, s],
  })
  t.equal((await mined(hash)).status, 'success')
  t.equal(await isUsed(other), true)
})

t.test('receiveWithAuthorization serves the payee only, by a signature of its own kind', async (t) => {
  const a = authorization()
  const signature = await payer.signTypedData({
    domain: DOMAIN,
    types: TYPES,
    primaryType: 'ReceiveWithAuthorization',
    message: a,
  })
  const receive = (account: typeof payer, proof: Hex) =>
    client.simulateContract({
      ...target,
      account,
      functionName: 'receiveWithAuthorization',
      args: [...values(a), proof],
    })
  t.equal(await reason(receive(settler, signature)), 'FiatTokenV2: caller must be the payee')
  t.equal(await reason(receive(shop, await sign(a))), 'FiatTokenV2: invalid signature')
  t.equal(await reason(tryOut(a, signature)), 'FiatTokenV2: invalid signature')
  const before = await chain.balance(shop.address)
  const { r, s, v = 0n } = parseSignature(signature)
  const hash = await walletOf(shop).writeContract({
    ...target,
    functionName: 'receiveWithAuthorization',
    args: [...values(a), Number(v), r, s],
  })
  t.equal((await mined(hash)).status, 'success')
  t.equal(await chain.balance(shop.address), before + 10_000n)
})

t.test('asks a contract wallet about its signature (ERC-1271)', async (t) => {
  const wallet = freshAccount()
  await chain.setCode(wallet.address, WALLET_CODE)
  await chain.mint(wallet.address, 10_000n)
  const a = authorization({ from: wallet.address })
  const digest = hashTypedData({
    domain: DOMAIN,
    types: TYPES,
    primaryType: 'TransferWithAuthorization',
    message: a,
  })
  t.equal(await reason(tryOut(a, keccak256(digest))), 'FiatTokenV2: invalid signature')
  t.equal(
    await reason(tryOut(a, await sign(a, wallet))),
    'FiatTokenV2: invalid signature',
    'a key signature does not count once there is code',
  )
  t.equal((await mined(await send(a, digest))).status, 'success')
  t.equal(await chain.balance(wallet.address), 0n)

  const mute = freshAccount()
  await chain.setCode(mute.address, '0x00')
  const b = authorization({ from: mute.address })
  t.equal(await reason(tryOut(b, await sign(b, mute))), 'FiatTokenV2: invalid signature')
})

t.test('moves plain ERC-20 tokens', async (t) => {
  const friend = freshAccount()
  const wallet = walletOf(payer)
  const before = await chain.balance(payer.address)
  await mined(await wallet.writeContract({ ...target, functionName: 'transfer', args: [friend.address, 5n] }))
  t.equal(await chain.balance(friend.address), 5n)
  const from = (value: bigint) =>
    client.simulateContract({
      ...target,
      account: settler,
      functionName: 'transferFrom',
      args: [payer.address, friend.address, value],
    })
  t.equal(await reason(from(1n)), 'ERC20: transfer amount exceeds allowance')
  await mined(await wallet.writeContract({ ...target, functionName: 'approve', args: [settler.address, 7n] }))
  t.equal(await reason(from(8n)), 'ERC20: transfer amount exceeds allowance')
  await mined(await walletOf(settler).writeContract((await from(4n)).request))
  t.equal(await chain.balance(payer.address), before - 9n)
  t.equal(
    await client.readContract({
      ...target,
      functionName: 'allowance',
      args: [payer.address, settler.address],
    }),
    3n,
  )
})
