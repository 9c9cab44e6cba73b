import { readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runProgram, startServer, type RunningServer } from '../../support/server.ts'
import { until } from '../../support/until.ts'
import { writeShop } from '../../support/catalogs.ts'

const UNPAID = { HOST: '127.0.0.1', METRICS_TOKEN: 'token-of-the-metrics' }

const ROUTE = (path: string): string =>
  `  ${path}: { price: free, upstream: 'http://127.0.0.1:9/x', summary: Says something }\n`

interface Health {
  readonly revision: string
  readonly detail?: string
}

async function healthOf({ url }: RunningServer): Promise<Health> {
  return (await (await fetch(`${url}/health`)).json()) as Health
}

async function metricsOf({ url }: RunningServer): Promise<string> {
  const answer = await fetch(`${url}/metrics`, { headers: { authorization: 'Bearer token-of-the-metrics' } })
  return answer.text()
}

async function refusedMetric(server: RunningServer): Promise<string | undefined> {
  return /^ratecard_catalog_refused (\d)$/m.exec(await metricsOf(server))?.[1]
}

function open(t: Test) {
  const shop = writeShop(t, ROUTE('/first'))
  const dataDir = join(shop.directory, 'data')
  const text = readFileSync(shop.catalog, 'utf8')
  const start = async (): Promise<RunningServer> => {
    const server = await startServer({ args: ['--catalog', shop.catalog], env: UNPAID, dataDir })
    t.teardown(() => server.stop())
    return server
  }
  const command = (...words: string[]) => runProgram([...words, '--data-dir', dataDir])
  return { ...shop, text, start, command }
}

t.test(
  'serves the last good revision after a restart with a broken file, until it is right again',
  async (t) => {
    const { catalog, text, start } = open(t)
    const first = await start()
    const { revision } = await healthOf(first)
    t.equal(await refusedMetric(first), '0')
    await first.stop()

    writeFileSync(catalog, 'routes: [broken')
    const second = await start()
    t.match(await healthOf(second), { status: 'ok', revision, detail: /catalog file cannot be served/ })
    t.equal(await refusedMetric(second), '1')
    t.match(second.output(), new RegExp(`serving revision ${revision}, which was served before`))
    const [refused] = second.log().filter(({ event }) => event === 'reload_refused')
    t.match(refused, { level: 'error', message: /catalog\.yaml:\d+:\d+ / })
    t.notMatch(
      refused,
      { message: /unexpected|\n +at / },
      'a mistake of a catalog is no fault of the program',
    )
    t.equal((await fetch(`${second.url}/first`)).status, 502, 'its route is served')

    writeFileSync(catalog, text.replace('/first', '/second'))
    await second.said(new RegExp(`revision ${revision} → `))
    const later = await healthOf(second)
    t.not(later.revision, revision)
    t.equal(later.detail, undefined)
    t.equal(await refusedMetric(second), '0')
  },
)

t.test('counts the reloads that were served and refused, and tells the age of the deny lists', async (t) => {
  const { catalog, directory, text, start } = open(t)
  const list = join(directory, 'denied.txt')
  writeFileSync(list, '')
  const hourAgo = Date.now() / 1000 - 3600
  utimesSync(list, hourAgo, hourAgo)
  const denying = text.replace(/^payments: \{/m, 'payments: { payers: { deny: ./denied.txt },')
  t.not(denying, text)
  writeFileSync(catalog, denying)
  const server = await start()
  const ageOf = async (name: string): Promise<number> =>
    Number(
      new RegExp(`^ratecard_deny_list_age_seconds\\{list="${name}"\\} (.+)$`, 'm').exec(
        await metricsOf(server),
      )?.[1],
    )
  t.ok((await ageOf('./denied.txt')) >= 3600)

  writeFileSync(catalog, 'routes: [broken')
  await server.said(/still serving revision/)
  writeFileSync(list, `0x${'1'.repeat(40)}\n`)
  writeFileSync(catalog, denying.replace('/first', '/second'))
  await server.said(/revision \S+ → /)
  t.match(await metricsOf(server), /^ratecard_catalog_reloads_total\{result="refused"\} 1$/m)
  t.match(await metricsOf(server), /^ratecard_catalog_reloads_total\{result="served"\} 1$/m)
  t.ok((await ageOf('./denied.txt')) < 3600)
})

t.test('does not start with a broken file that never was right', async (t) => {
  const { catalog, command } = open(t)
  writeFileSync(catalog, 'routes: [broken')
  const { code, stderr } = await command('serve', '--port', '0', '--catalog', catalog)
  t.equal(code, 1)
  t.match(stderr, 'not served')
})

t.test('rolls back to a kept revision, also over a restart, until the file changes', async (t) => {
  const { catalog, text, start, command } = open(t)
  const server = await start()
  const { revision: first } = await healthOf(server)
  const of = (path: string): string => text.replace('/first', path)
  writeFileSync(catalog, of('/second'))
  await server.said(new RegExp(`revision ${first} → `))
  const { revision: second } = await healthOf(server)

  const list = await command('revisions', '--json')
  t.strictSame(
    (JSON.parse(list.stdout) as { revision: string }[]).map(({ revision }) => revision),
    [second, first],
    'newest first',
  )
  t.match(await command('rollback'), { code: 64, stderr: /missing argument: a revision/ })
  t.match(await command('rollback', 'nonsense'), { code: 1, stderr: /revision nonsense is not kept here/ })

  t.match(await command('rollback', first, '--catalog', catalog), { code: 0 })
  await until('the server serves it', async () => (await healthOf(server)).revision === first)
  await server.stop()
  const restarted = await start()
  t.equal((await healthOf(restarted)).revision, first, 'also after a restart')
  t.match(restarted.output(), `rolled back to revision ${first}, until the catalog file changes`)

  writeFileSync(catalog, of('/third'))
  await until('the new file is served', async () => (await healthOf(restarted)).revision !== first)
  t.not((await healthOf(restarted)).revision, second)

  const again = await command('rollback', second, '--catalog', catalog, '--json')
  t.match(JSON.parse(again.stdout), { revision: second, rolled_back: true })
  await until('the server rolls back', async () => (await healthOf(restarted)).revision === second)
  const third = (JSON.parse((await command('revisions', '--json')).stdout) as { revision: string }[])
    .map(({ revision }) => revision)
    .find((revision) => revision !== first && revision !== second)
  t.match(await command('rollback', third ?? '', '--catalog', catalog), { code: 0, stdout: /it is served/ })
  await until('the file is served', async () => (await healthOf(restarted)).revision === third)
})
