import t from 'tap'
import { createErrorReporter } from '../../../src/cli/log.ts'
import { LedgerError } from '../../../src/engine/base/errors.ts'
import { readEnv } from '../../../src/env.ts'

t.test('reports an unreachable store once', async (t) => {
  const lines: string[] = []
  let now = 0
  const { hide } = readEnv({})
  const report = createErrorReporter(
    ({ message }) => lines.push(message),
    () => now,
    hide,
  )
  for (let i = 0; i < 100; i += 1) report(new LedgerError('the store is away'))
  t.strictSame(lines, ['ledger: the store is away'])
  report(new TypeError('a mistake'))
  t.match(lines[1], /^unexpected: TypeError: a mistake\n\s+at /, 'another trouble is told at once')
  now += 30_000
  report(new LedgerError('the store is away'))
  t.equal(lines.length, 3, 'and the first again after a while')
})

t.test('removes keys from the messages of libraries', async (t) => {
  const lines: string[] = []
  const keys = ['ab'.repeat(32), 'cd'.repeat(32)]
  const env = readEnv({
    RPC_URL_8453: 'https://node.example/v2/endpoint-key/',
    SETTLER_PRIVATE_KEY: `0x${keys[0]}, ${keys[1]}`,
    REDIS_URL: 'redis://:word@ledger.example',
    ACME: 'credential of a source',
    SHORT_KEY: 'as',
  })
  t.equal(env.secret('ACME'), 'credential of a source')
  const report = createErrorReporter(
    ({ message }) => lines.push(message),
    () => 0,
    env.hide,
  )
  report(new Error(`fetch of https://node.example/v2/endpoint-key failed as 0x${keys.join(' or 0x')}`))
  report(new LedgerError('redis://:word@ledger.example hangs up, says a credential of a source'))
  const said = lines.join('\n')
  for (const secret of ['endpoint-key', ...keys, ':word@', 'credential of a source']) t.notMatch(said, secret)
  t.match(said, 'fetch of [RPC_URL_8453] failed as 0x[SETTLER_PRIVATE_KEY] or 0x[SETTLER_PRIVATE_KEY]')
  t.match(said, 'ledger: [REDIS_URL] hangs up, says a [ACME]')
})
