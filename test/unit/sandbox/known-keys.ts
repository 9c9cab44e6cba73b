import t from 'tap'
import { mnemonicToAccount } from 'viem/accounts'
import { developmentAddresses, readSandboxAddresses } from '../../../src/sandbox/known-keys.ts'

const FIRST = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const FIRST_KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
const THIRD_KEY = '0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a'
const SECOND_KEY = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d'

t.test('knows every account that development tools use', async (t) => {
  const mnemonic = 'test test test test test test test test test test test junk'
  const handedOut = Array.from({ length: 20 }, (_, addressIndex) =>
    mnemonicToAccount(mnemonic, { addressIndex }).address.toLowerCase(),
  )
  t.same([...developmentAddresses], handedOut)
})

t.test('knows the addresses of its own sandbox, on every chain in it', async (t) => {
  const payTo = '0x00000000000000000000000000000000DeaDBeef'
  const recipient = '0x00000000000000000000000000000000000000Aa'
  const directory = t.testdir({
    'sandbox.json': JSON.stringify({
      baseUrl: 'http://localhost:4021',
      evm: { payTo, asset: '0x00000000000000000000000000000000000000bb' },
      tempo: { recipient },
    }),
    sandbox: {
      'state.json': JSON.stringify({
        evm: { payerKey: FIRST_KEY, signerKey: SECOND_KEY, genesis: `0x${'11'.repeat(32)}` },
        refundKey: THIRD_KEY,
      }),
    },
  })
  t.same([...readSandboxAddresses(directory)].sort(), [
    '0x00000000000000000000000000000000000000aa',
    '0x00000000000000000000000000000000deadbeef',
    '0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc',
    '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
    FIRST.toLowerCase(),
  ])
})

t.test('ignores a missing sandbox and a damaged file', async (t) => {
  t.same([...readSandboxAddresses(t.testdir())], [])
  t.same([...readSandboxAddresses(t.testdir({ 'sandbox.json': '{"evm": {"payerKey": "0x12", "pay' }))], [])
  t.same(
    [...readSandboxAddresses(t.testdir({ 'sandbox.json': '{"evm": {"payerKey": "0x12", "payTo": 7}}' }))],
    [],
  )
})
