import { computeChannelId } from '@x402/evm/batch-settlement/client'
import t from 'tap'
import {
  decodeFunctionData,
  encodeAbiParameters,
  hashTypedData,
  keccak256,
  parseAbi,
  recoverAddress,
  toHex,
} from 'viem'
import { findNetwork } from '../../../../../src/engine/base/networks.ts'
import { signDigest, addressOfKey } from '../../../../../src/engine/chains/evm/signature.ts'
import {
  claimCall,
  depositCall,
  refundCall,
  settleCall,
  together,
} from '../../../../../src/engine/x402/batch-settlement-evm/channel-calls.ts'
import { CHANNELS, DEPOSIT_COLLECTOR } from '../../../../../src/engine/base/channel-contracts.ts'
import {
  channelIdOf,
  claimDigest,
  depositDigest,
  depositNonce,
  refundDigest,
  voucherDigest,
} from '../../../../../src/engine/x402/batch-settlement-evm/typed-data.ts'

const KEY = `0x${'4c'.repeat(32)}` as const
const [PAYER, RECEIVER] = [`0x${'11'.repeat(20)}`, `0x${'22'.repeat(20)}`] as const
const CONFIG = {
  payer: PAYER,
  payerAuthorizer: PAYER,
  receiver: RECEIVER,
  receiverAuthorizer: `0x${'33'.repeat(20)}`,
  token: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  withdrawDelay: 900,
  salt: `0x${'05'.repeat(32)}`,
} as const
const CHAIN = 8453
const ID = channelIdOf(CONFIG, CHAIN)
const DOMAIN = { name: 'x402 Batch Settlement', version: '1', chainId: CHAIN, verifyingContract: CHANNELS }
const hex = (digest: Uint8Array): string => toHex(digest)

t.test('hashes a channel as the SDK does', async (t) => {
  t.equal(ID, computeChannelId(CONFIG, 'eip155:8453'))
})

t.test('hashes vouchers, refunds and claims as viem does', async (t) => {
  t.equal(
    hex(voucherDigest(ID, 7n, CHAIN)),
    hashTypedData({
      domain: DOMAIN,
      types: {
        Voucher: [
          { name: 'channelId', type: 'bytes32' },
          { name: 'maxClaimableAmount', type: 'uint128' },
        ],
      },
      primaryType: 'Voucher',
      message: { channelId: ID, maxClaimableAmount: 7n },
    }),
  )
  t.equal(
    hex(refundDigest(ID, 3n, 9n, CHAIN)),
    hashTypedData({
      domain: DOMAIN,
      types: {
        Refund: [
          { name: 'channelId', type: 'bytes32' },
          { name: 'nonce', type: 'uint256' },
          { name: 'amount', type: 'uint128' },
        ],
      },
      primaryType: 'Refund',
      message: { channelId: ID, nonce: 3n, amount: 9n },
    }),
  )
  const entries = [1n, 2n].map((total) => ({ channelId: ID, ceiling: 7n, total }))
  t.equal(
    hex(claimDigest(entries, CHAIN)),
    hashTypedData({
      domain: DOMAIN,
      types: {
        ClaimBatch: [{ name: 'claims', type: 'ClaimEntry[]' }],
        ClaimEntry: [
          { name: 'channelId', type: 'bytes32' },
          { name: 'maxClaimableAmount', type: 'uint128' },
          { name: 'totalClaimed', type: 'uint128' },
        ],
      },
      primaryType: 'ClaimBatch',
      message: {
        claims: [1n, 2n].map((totalClaimed) => ({ channelId: ID, maxClaimableAmount: 7n, totalClaimed })),
      },
    }),
  )
})

t.test('hashes the deposit of a channel as viem does', async (t) => {
  const network = findNetwork('base')
  if (network === undefined) throw new Error('base is in the table')
  const salt = `0x${'09'.repeat(32)}` as const
  const nonce = keccak256(encodeAbiParameters([{ type: 'bytes32' }, { type: 'uint256' }], [ID, BigInt(salt)]))
  t.equal(depositNonce(ID, salt), nonce)
  const deposit = { amount: '5', validAfter: '1', validBefore: '2', salt, signature: '0x' } as const
  t.equal(
    hex(depositDigest(network, CONFIG, ID, deposit)),
    hashTypedData({
      domain: {
        name: network.token.name,
        version: network.token.version,
        chainId: CHAIN,
        verifyingContract: network.token.address,
      },
      types: {
        ReceiveWithAuthorization: [
          { name: 'from', type: 'address' },
          { name: 'to', type: 'address' },
          { name: 'value', type: 'uint256' },
          { name: 'validAfter', type: 'uint256' },
          { name: 'validBefore', type: 'uint256' },
          { name: 'nonce', type: 'bytes32' },
        ],
      },
      primaryType: 'ReceiveWithAuthorization',
      message: { from: PAYER, to: DEPOSIT_COLLECTOR, value: 5n, validAfter: 1n, validBefore: 2n, nonce },
    }),
  )
})

t.test('encodes calls that viem decodes', async (t) => {
  const abi = parseAbi([
    'struct Channel { address payer; address payerAuthorizer; address receiver; address receiverAuthorizer; address token; uint40 withdrawDelay; bytes32 salt; }',
    'struct Voucher { Channel channel; uint128 maxClaimableAmount; }',
    'struct Claim { Voucher voucher; bytes signature; uint128 totalClaimed; }',
    'function deposit(Channel config, uint128 amount, address collector, bytes collectorData)',
    'function claimWithSignature(Claim[] voucherClaims, bytes authorizerSignature)',
    'function settle(address receiver, address token)',
    'function refundWithSignature(Channel config, uint128 amount, uint256 nonce, bytes signature)',
    'function multicall(bytes[] data)',
  ])
  const decode = (data: `0x${string}`) => decodeFunctionData({ abi, data })
  const [one, two] = [`0x${'aa'.repeat(65)}`, `0x${'bb'.repeat(65)}`] as const
  const rows = [one, two].map((signature, place) => ({
    config: CONFIG,
    ceiling: 10n,
    signature,
    total: BigInt(place + 1),
  }))
  const claim = claimCall(rows, two)
  t.match(decode(claim), {
    functionName: 'claimWithSignature',
    args: [
      rows.map(({ signature, total }) => ({
        voucher: { channel: CONFIG, maxClaimableAmount: 10n },
        signature,
        totalClaimed: total,
      })),
      two,
    ],
  })
  const refund = refundCall(CONFIG, 5n, 6n, one)
  t.match(decode(refund), { functionName: 'refundWithSignature', args: [CONFIG, 5n, 6n, one] })
  t.match(decode(settleCall(RECEIVER, CONFIG.token)), { functionName: 'settle' })
  t.match(decode(together([claim, refund])), { functionName: 'multicall', args: [[claim, refund]] })
  const salt = `0x${'09'.repeat(32)}` as const
  const signed = { amount: '5', validAfter: '1', validBefore: '2', salt, signature: one }
  const data = encodeAbiParameters(
    [{ type: 'uint256' }, { type: 'uint256' }, { type: 'uint256' }, { type: 'bytes' }],
    [1n, 2n, BigInt(salt), one],
  )
  t.match(decode(depositCall(CONFIG, signed)), {
    functionName: 'deposit',
    args: [CONFIG, 5n, DEPOSIT_COLLECTOR, data],
  })
})

t.test('signs with 65 bytes that the contract reads', async (t) => {
  const digest = voucherDigest(ID, 7n, CHAIN)
  const signature = signDigest(KEY, digest)
  t.match(signature, /^0x[0-9a-f]{128}(1b|1c)$/)
  t.equal(await recoverAddress({ hash: toHex(digest), signature }), addressOfKey(KEY))
})
