import t from 'tap'
import { buyerCommands } from '../../../src/buyer/commands.ts'
import { BUYER, runProgram } from '../../support/server.ts'

type Ran = Awaited<ReturnType<typeof runProgram>>

const run = (argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> =>
  runProgram(argv, { XDG_STATE_HOME: t.testdirName, DATA_DIR: t.testdirName, ...env }, BUYER)

t.test('prints its version, its commands and the options of each, and no key', async (t) => {
  t.match(await run(['--version']), { code: 0, stdout: /^ratecard-buyer \d+\.\d+\.\d+\n$/, stderr: '' })
  for (const word of ['--help', '-h', 'help'])
    t.match(await run([word]), { code: 0, stdout: /^ {2}pay .*\n {2}verify .*\n {2}close .*\n {2}mcp /m })
  for (const { name, options } of buyerCommands('ratecard-buyer')) {
    const { code, stdout } = await run([name, '--help'])
    t.equal(code, 0)
    t.match(stdout, `usage: ratecard-buyer ${name} `)
    // Verifying needs no key.
    if (name !== 'verify') t.match(stdout, /^ {2}PAYER_PRIVATE_KEY=… ratecard-buyer /m)
    for (const option of Object.keys(options)) t.match(stdout, `--${option}`)
  }
})

t.test('exits with 64 on a wrong command line, with the right one', async (t) => {
  for (const [argv, reason] of [
    [['serve'], /unknown command "serve"/],
    [['pay'], /missing argument: the URL to pay for/],
    [['pay', 'https://a.example', 'https://b.example'], /unexpected argument/],
    [['pay', 'https://a.example', '--max', '1e3'], /--max takes USD/],
    [['pay', 'https://a.example', '--protocol', 'cash'], /--protocol takes x402 or mpp/],
    [['pay', 'ftp://a.example/x'], /neither a URL/],
    [['mcp', 'https://a.example', '--max', '5'], /--max-per-call and --max are required/],
    [['mcp', 'https://a.example', '--max', '5', '--max-per-cal', '1'], /--max-per-cal/],
    [['mcp', 'a.example', '--max', '5', '--max-per-call', '1'], /is not the URL of a service/],
  ] as const) {
    const { code, stdout, stderr } = await run(argv)
    t.match({ code, stdout }, { code: 64, stdout: '' }, argv.join(' '))
    t.match(stderr, reason)
    t.match(stderr, /ratecard-buyer/)
  }
  t.match(await run([]), { code: 64, stdout: /^ {2}pay /m })
})

t.test('exits with 78 on a wrong environment, and keeps the key to itself', async (t) => {
  const { code, stdout, stderr } = await run(['pay', 'http://127.0.0.1:1/x'], {
    PAYER_PRIVATE_KEY: 'f00dcafe',
  })
  t.match({ code, stdout }, { code: 78, stdout: '' })
  t.match(stderr, /^environment: PAYER_PRIVATE_KEY must be private keys/)
  t.notMatch(stderr, 'f00dcafe')
})

t.test('exits with 4 where nothing was charged, and with 1 without a wallet', async (t) => {
  t.match(await run(['pay', 'http://127.0.0.1:1/x']), { code: 4, stderr: /does not answer[^]*charged: no/ })
  const limits = ['--max-per-call', '0.01', '--max', '1']
  t.match(await run(['mcp', 'http://127.0.0.1:1', ...limits]), { code: 1, stderr: /set PAYER_PRIVATE_KEY/ })
  const zero = { PAYER_PRIVATE_KEY: '0'.repeat(64) }
  t.match(await run(['mcp', 'http://127.0.0.1:1', ...limits], zero), { code: 1, stderr: /no wallet/ })
})
