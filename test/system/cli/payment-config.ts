import t from 'tap'
import { join } from 'node:path'
import { playMoneyProblems, sandboxProblems } from '../../../src/cli/payment-config.ts'
import { VARIABLES } from '../../../src/engine/app/option-names.ts'
import type { Catalog } from '../../../src/engine/catalog/catalog.ts'
import { openNetworks } from '../../../src/engine/app/all-networks.ts'
import type { PaymentConfig } from '../../../src/engine/app/options.ts'
import { openLmdbLedger } from '../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import { systemRuntime } from '../../../src/engine/base/runtime.ts'
import { invalidConfig, missingConfig, movedPayees } from '../../../src/engine/app/config-problems.ts'
import { readEnv } from '../../../src/env.ts'
import { developmentAddresses } from '../../../src/sandbox/known-keys.ts'
import { compileRoutes } from '../../support/catalogs.ts'
import { cdpKeyPair } from '../../support/facilitator.ts'

const PAYEE = `0x${'1'.repeat(40)}`
const SVM_PAYEE = '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU'
const KEY = `0x${'b'.repeat(64)}` as const
const DEVELOPER = {
  address: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
  key: '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80',
} as const

t.test('opens a sandbox on this machine only', async (t) => {
  const problems = (variables: Record<string, string>): number => sandboxProblems(readEnv(variables)).length
  for (const url of [
    'http://localhost:4021',
    'http://127.0.0.1',
    'http://127.1.2.3:80',
    'http://[::1]:4021',
    'https://localhost',
  ]) {
    t.equal(problems({ BASE_URL: url }), 0, url)
  }
  t.equal(problems({}), 0)
  for (const url of [
    'https://api.example.com',
    'http://localhost.example.com',
    'http://127.0.0.1.example.com',
    'http://10.0.0.1:4021',
    'http://0.0.0.0:4021',
    'http://[::2]',
    'http://[::ffff:10.0.0.1]',
  ]) {
    t.equal(problems({ BASE_URL: url }), 1, url)
  }
  t.equal(problems({ NODE_ENV: 'production' }), 1)
  t.equal(problems({ NODE_ENV: 'production', BASE_URL: 'https://api.example.com' }), 2, 'both are told')
})

const SOLD = compileRoutes('  /paid/x: { price: 1, summary: X }\n')
const FREE = compileRoutes('  /x: { price: free, handler: x, summary: X }\n')

t.test('names exactly the settings that are missing', async (t) => {
  const ledger = await openLmdbLedger(join(t.testdir(), 'ledger'))
  t.teardown(() => ledger.close())
  const told = (
    catalog: Catalog,
    {
      payTo = '',
      signerKeys = [],
      rpcUrls = {},
      facilitators = [],
      mppRecipient,
      mppSecretKeys = [],
    }: Partial<PaymentConfig>,
    baseUrl = 'https://api.example.com',
  ): string => {
    const config = { payTo, signerKeys, rpcUrls, facilitators, mppRecipient, mppSecretKeys }
    const silent = (): void => undefined
    const deps = {
      names: VARIABLES,
      ledger,
      owner: 'test',
      runtime: systemRuntime,
      log: silent,
      report: silent,
    }
    const networks = openNetworks({ ...deps, config, baseUrl })
    return missingConfig(catalog, config, networks, VARIABLES).join('\n')
  }
  const rpcUrls = { 8453: 'http://127.0.0.1:1' }
  t.equal(told(SOLD, { payTo: PAYEE, signerKeys: [KEY], rpcUrls }), '')
  t.equal(told(FREE, {}), '', 'what is free needs nothing')
  t.match(told(SOLD, {}), /PAY_TO[^]*SETTLER_PRIVATE_KEY[^]*RPC_URL_8453 \(Base\)/)
  t.notMatch(told(SOLD, { signerKeys: [KEY], rpcUrls }), /SETTLER|RPC_URL/)
  t.match(told(SOLD, { signerKeys: [KEY], rpcUrls }), /^PAY_TO/)
  t.match(told(SOLD, { payTo: PAYEE, rpcUrls }), /^SETTLER_PRIVATE_KEY/)
  t.match(told(SOLD, { payTo: PAYEE, signerKeys: [KEY] }), /^an RPC endpoint/)
  t.match(
    told(SOLD, { payTo: PAYEE, signerKeys: [KEY], rpcUrls: { 1: 'http://127.0.0.1:1' } }),
    /RPC_URL_8453/,
  )
  const mpp = { method: 'tempo', intent: 'charge', chain: 4217, currency: PAYEE, testnet: false }
  const other = { ...SOLD, payments: { ...SOLD.payments, x402: undefined, mpp } }
  const all = {
    mppRecipient: PAYEE,
    mppSecretKeys: ['s'.repeat(32)],
    rpcUrls: { 4217: 'http://127.0.0.1:1' },
  }
  t.equal(told(other, all), '', 'nobody is asked for what MPP does not need')
  t.match(told(other, {}), /^MPP_RECIPIENT[^]*MPP_SECRET_KEY[^]*RPC_URL_4217/)
  t.match(told(other, all, 'http://api.example.com'), /^BASE_URL with https/)
  t.equal(told(other, all, 'http://localhost:4021'), '')
  const both = { ...SOLD, payments: { ...SOLD.payments, mpp } }
  t.equal(told(both, { ...all, payTo: PAYEE }), '', 'one protocol that can settle is enough')
  t.match(told(both, all), /^PAY_TO/, 'a catalog that offers x402 says who is paid by it')
  const facilitators = [{ url: 'https://facilitator.example', token: undefined }]
  t.equal(
    told(SOLD, { payTo: PAYEE, facilitators }),
    '',
    'a facilitator needs neither key nor endpoint of ours',
  )
  t.match(told(SOLD, { facilitators }), /^PAY_TO/)
  t.match(told(SOLD, { payTo: PAYEE }), /or FACILITATOR_URL/)
})

t.test(
  'finds well-known addresses and keys in any spelling, and keeps keys out of the message',
  async (t) => {
    const play = developmentAddresses
    t.strictSame(playMoneyProblems({ payTo: PAYEE, signerKeys: [KEY], mppRecipient: undefined }, play), [])
    for (const payTo of [
      DEVELOPER.address,
      DEVELOPER.address.toLowerCase(),
      `0x${DEVELOPER.address.slice(2).toUpperCase()}`,
    ]) {
      t.match(playMoneyProblems({ payTo, signerKeys: [KEY], mppRecipient: undefined }, play), [
        /^PAY_TO .*known to others/,
      ])
    }
    const problems = playMoneyProblems(
      { payTo: PAYEE, signerKeys: [KEY, DEVELOPER.key], mppRecipient: undefined },
      play,
    )
    t.match(problems, [/^SETTLER_PRIVATE_KEY .*known to others/])
    t.notMatch(problems.join(''), DEVELOPER.key.slice(2))
    t.equal(
      playMoneyProblems(
        { payTo: DEVELOPER.address, signerKeys: [DEVELOPER.key], mppRecipient: undefined },
        play,
      ).length,
      2,
    )
    t.match(playMoneyProblems({ payTo: PAYEE, signerKeys: [], mppRecipient: DEVELOPER.address }, play), [
      /^MPP_RECIPIENT .*known to others/,
    ])
  },
)

t.test('accepts a payee in another spelling as the same payee', async (t) => {
  const before = { payTo: DEVELOPER.address, payToSolana: SVM_PAYEE }
  t.strictSame(movedPayees(before, { ...before, payTo: before.payTo.toLowerCase() }), [])
  t.match(movedPayees(before, { ...before, payTo: PAYEE }), [/restart/])
  t.match(movedPayees(before, { ...before, payTo: '' }), [/restart/])
  t.match(movedPayees(before, { ...before, payToSolana: SVM_PAYEE.toLowerCase() }), [/restart/])
})

t.test('refuses a mistyped payee or key at start', async (t) => {
  const sound = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
  t.strictSame(invalidConfig({ payTo: sound, signerKeys: [KEY], mppRecipient: undefined }, VARIABLES), [])
  t.strictSame(
    invalidConfig({ payTo: sound, signerKeys: [KEY, DEVELOPER.key], mppRecipient: undefined }, VARIABLES),
    [],
    'several settle together',
  )
  t.strictSame(
    invalidConfig({ payTo: sound.toLowerCase(), signerKeys: [], mppRecipient: undefined }, VARIABLES),
    [],
    'lower case carries no checksum',
  )
  t.match(
    invalidConfig(
      { payTo: sound.replace('fCD6', 'fcD6'), signerKeys: [], mppRecipient: undefined },
      VARIABLES,
    ),
    [/EIP-55/],
  )
  t.match(
    invalidConfig({ payTo: `0x${'0'.repeat(40)}`, signerKeys: [], mppRecipient: undefined }, VARIABLES),
    [/zero address/],
  )
  t.match(
    invalidConfig({ payTo: sound, signerKeys: [], mppRecipient: sound.replace('fCD6', 'fcD6') }, VARIABLES),
    [/MPP_RECIPIENT .*EIP-55/],
  )
  const cdp = (keySecret: string) => {
    const facilitators = [{ url: 'https://cdp.example', token: undefined, cdp: { keyId: 'id', keySecret } }]
    return invalidConfig({ payTo: sound, signerKeys: [], facilitators, mppRecipient: undefined }, VARIABLES)
  }
  t.strictSame(cdp(cdpKeyPair('ed25519').keySecret), [])
  t.strictSame(cdp(cdpKeyPair('ec').keySecret), [])
  for (const secret of ['short', '-----BEGIN EC PRIVATE KEY-----'])
    t.match(cdp(secret), [/^CDP_API_KEY_SECRET must be an API key of CDP/])
  const none = `0x${'0'.repeat(64)}` as const
  const beyond = `0x${'f'.repeat(64)}` as const
  for (const key of [none, beyond]) {
    const problems = invalidConfig(
      { payTo: sound, signerKeys: [KEY, key], mppRecipient: undefined },
      VARIABLES,
    )
    t.match(problems, [/^SETTLER_PRIVATE_KEY/])
    t.notMatch(problems.join(''), key.slice(2))
  }
})
