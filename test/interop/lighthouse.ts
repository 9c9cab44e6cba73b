import t, { type Test } from 'tap'
import { stockFetch } from '../support/payment.ts'
import { readSandboxFile } from '../support/server.ts'
import { findBrowser } from './support/browser.ts'
import { openAuditor, type Verdict } from './support/lighthouse.ts'
import { openSandbox } from './support/shipped-service.ts'

const program = findBrowser()
if (program === undefined && process.env['CI'] === '1')
  t.fail('there is no Chromium: apt-get install chromium')
const skip = program === undefined && 'needs Chromium'

const { server, url } = await openSandbox(t)
const auditor = program === undefined ? undefined : await openAuditor(program)
t.teardown(() => auditor?.close())

const LEAST = 98
/** Said, not held: it depends on what else the machine does. */
const TIMED = 'performance'

async function audit(path: string, headers?: Record<string, string>): Promise<Verdict> {
  if (auditor === undefined) throw new Error('no browser')
  return auditor.audit(path, headers)
}

function holdScores(t: Test, page: string, { scores, faults }: Verdict, categories: readonly string[]): void {
  t.comment(`${page}: ${[...scores].map(([category, score]) => `${category} ${score}`).join(', ')}`)
  for (const fault of faults) t.comment(`${page}: ${fault}`)
  for (const category of categories) {
    const score = scores.get(category) ?? 0
    t.ok(score >= LEAST, `${page}: ${category} ${score}`)
  }
}

t.test('gives public pages the best marks', { skip }, async (t) => {
  await (await stockFetch(readSandboxFile(server).evm.payerKey)(`${url}/paid/ping`)).text()
  for (const path of ['/', '/docs', '/docs/paid_util_workday', '/docs/errors', '/status', '/privacy']) {
    const verdict = await audit(url + path)
    const categories = [...verdict.scores.keys()].filter((category) => category !== TIMED)
    t.ok(categories.includes('seo'), 'search engines are one of them')
    holdScores(t, path, verdict, categories)
  }
})

t.test('gives the console the best marks in accessibility and best practices', { skip }, async (t) => {
  const [, entrance = ''] = /^console: (\S+)$/m.exec(server.output()) ?? []
  const Cookie = (await fetch(entrance)).headers.get('set-cookie')?.split(';')[0] ?? ''
  const { origin } = new URL(entrance)
  for (const path of ['/', '/revenue', '/payments'])
    holdScores(t, `console ${path}`, await audit(origin + path, { Cookie }), [
      'accessibility',
      'best-practices',
    ])
})
