import { readFileSync } from 'node:fs'
import t from 'tap'
import { challengeOf, send, sign, type Hex } from '../../../support/payment.ts'
import { openShop } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'

const coverage = new URL('../../../support/coverage.mjs', import.meta.url)
const shop = await openShop(async () => ({ NODE_OPTIONS: `--import=${coverage.href}` }))
t.teardown(() => shop.close())

const files = await filesOfPaidRequest()

t.test('executes every file that CONTRIBUTING lists for a paid request', async (t) => {
  const text = readFileSync(new URL('../../../../CONTRIBUTING.md', import.meta.url), 'utf8')
  const [, section = ''] = /## Life of a paid request\n\n(.*?)\n\n/s.exec(text) ?? []
  const listed = Array.from(section.matchAll(/\]\(src\/engine\/([^)]*)\)/g), ([, file = '']) => file)
  t.ok(listed.length > 10, `${listed.length} files`)
  for (const file of listed) t.ok(files.includes(file), file)
})

/** Files of the engine with a function that every one of some paid requests has called; what timers do is in few of them. */
async function filesOfPaidRequest(): Promise<readonly string[]> {
  const key = await shop.wallet()
  let printed = 0
  const called = async (): Promise<readonly string[]> => {
    shop.server.process.kill('SIGUSR2')
    await until('the server has printed what it called', () => reports(shop.server.output()).length > printed)
    const [report = '[]'] = reports(shop.server.output()).slice(printed)
    printed += 1
    const urls = JSON.parse(report) as readonly string[]
    return urls.flatMap((each) => /\/dist\/engine\/(.*)\.js$/.exec(each)?.[1] ?? []).toSorted()
  }
  const buy = async (n: number, payer: Hex): Promise<readonly string[]> => {
    const path = `${shop.url}/paid/work?n=${n}`
    const { header } = await sign(await challengeOf(path), payer)
    await called()
    const response = await send(path, header)
    await response.text()
    if (response.status !== 200) throw new Error(`a paid request was answered ${response.status}`)
    return called()
  }
  // The first loads what is loaded late.
  await buy(1, key)
  const runs: (readonly string[])[] = []
  for (const n of [2, 3, 4, 5]) runs.push(await buy(n, key))
  const [first = [], ...others] = runs
  return first.filter((file) => others.every((each) => each.includes(file))).map((file) => `${file}.ts`)
}

function reports(output: string): readonly string[] {
  return Array.from(output.matchAll(/^called (.*)$/gm), ([, report = '']) => report)
}
