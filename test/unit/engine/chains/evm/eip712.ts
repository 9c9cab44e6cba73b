import t from 'tap'
import { hashStruct, hashTypedData, toHex } from 'viem'
import { findNetwork } from '../../../../../src/engine/base/networks.ts'
import { separatorOf, typedDataDigest } from '../../../../../src/engine/chains/evm/eip712.ts'
import { permitDigest } from '../../../../../src/engine/chains/evm/permit2/permit.ts'
import { PERMIT2, PERMIT_TYPES, UPTO_PROXY } from '../../../../support/upto.ts'

const [PAYER, PAYEE] = [`0x${'11'.repeat(20)}`, `0x${'22'.repeat(20)}`] as const
const TYPES = { Note: [{ name: 'number', type: 'uint256' }] } as const
const NOTE = { types: TYPES, primaryType: 'Note', message: { number: 7n } } as const

t.test('signs what viem signs, under domains with and without a version', async (t) => {
  const place = { name: 'A token', chainId: 8453, verifyingContract: PAYEE } as const
  const struct = hashStruct({ data: NOTE.message, primaryType: 'Note', types: TYPES }).slice(2)
  for (const domain of [place, { ...place, version: '2' }])
    t.equal(toHex(typedDataDigest(separatorOf(domain), struct)), hashTypedData({ ...NOTE, domain }))
})

t.test('signs a permit for the proxy as viem does', async (t) => {
  const network = findNetwork('base')
  if (network === undefined) throw new Error('base is in the table')
  const { address: token } = network.token
  const permit = {
    from: PAYER,
    token,
    amount: '1234',
    nonce: '99',
    deadline: '2000000000',
    to: PAYEE,
    facilitator: PAYER,
    validAfter: '5',
  } as const
  const digest = hashTypedData({
    domain: { name: 'Permit2', chainId: network.chainId, verifyingContract: PERMIT2 },
    types: PERMIT_TYPES,
    primaryType: 'PermitWitnessTransferFrom',
    message: {
      permitted: { token, amount: 1234n },
      spender: UPTO_PROXY,
      nonce: 99n,
      deadline: 2_000_000_000n,
      witness: { to: PAYEE, facilitator: PAYER, validAfter: 5n },
    },
  })
  t.equal(toHex(permitDigest(network, permit)), digest)
})
