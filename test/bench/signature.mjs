// One payment signature: whose is it? viem in JavaScript next to ours.
import { randomBytes } from 'node:crypto'
import { recoverTypedDataAddress } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { findNetwork } from '../../dist/engine/base/networks.js'
import { authorizationDigest } from '../../dist/engine/chains/evm/eip3009/digest.js'
import { recoverSigner, splitSignature } from '../../dist/engine/chains/evm/signature.js'
import { median, printTable, show } from './figures.mjs'

const types = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
}

export async function measureSignature({ rounds, checks }) {
  const network = findNetwork('eip155:8453')
  const payments = await Promise.all(Array.from({ length: checks }, () => sign(network)))
  const theirs = ({ typed, signature }) => recoverTypedDataAddress({ ...typed, signature })
  const ours = ({ authorization, signature }) =>
    recoverSigner(authorizationDigest(network, authorization), splitSignature(signature))
  const times = { theirs: [], ours: [] }
  // The first round warms up and is not counted.
  for (let round = 0; round <= rounds; round += 1) {
    const pair = [await time(payments, theirs), await time(payments, ours)]
    if (round > 0) {
      times.theirs.push(pair[0])
      times.ours.push(pair[1])
    }
  }
  const [viem, own] = [median(times.theirs), median(times.ours)]
  printTable(
    'One signature check (EIP-712 digest, then the signer)',
    ['', 'ms', 'of viem'],
    [
      ['viem recoverTypedDataAddress', show(viem, 3), '1.00'],
      ['ours', show(own, 3), show(own / viem, 2)],
    ],
  )
}

async function sign(network) {
  const account = privateKeyToAccount(generatePrivateKey())
  const authorization = {
    from: account.address,
    to: privateKeyToAccount(generatePrivateKey()).address,
    value: '1000',
    validAfter: '0',
    validBefore: '1893456000',
    nonce: `0x${randomBytes(32).toString('hex')}`,
  }
  const { token, chainId } = network
  const typed = {
    domain: { name: token.name, version: token.version, chainId, verifyingContract: token.address },
    types,
    primaryType: 'TransferWithAuthorization',
    message: {
      ...authorization,
      value: BigInt(authorization.value),
      validAfter: BigInt(authorization.validAfter),
      validBefore: BigInt(authorization.validBefore),
    },
  }
  return { authorization, typed, signature: await account.signTypedData(typed) }
}

/** Milliseconds a check. */
async function time(payments, check) {
  const begun = performance.now()
  for (const payment of payments) {
    const signer = await check(payment)
    if (signer?.toLowerCase() !== payment.authorization.from.toLowerCase())
      throw new Error('the signer is not the payer')
  }
  return (performance.now() - begun) / payments.length
}
