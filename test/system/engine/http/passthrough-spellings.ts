import { join } from 'node:path'
import t from 'tap'
import { Connection } from '../../../fuzz/support/connection.ts'
import { serveUnpaid } from '../../../support/server.ts'
import { frontCatalog, openSite } from '../../../support/site.ts'
import { spellingsOf } from '../../../support/spellings.ts'

const site = await openSite()
t.teardown(() => site.close())
const file = join(t.testdir({ 'catalog.yaml': frontCatalog(site.url) }), 'catalog.yaml')
const server = await serveUnpaid(t, file)

for (const [path, method] of [
  ['/v1/translate', 'POST'],
  ['/search', 'GET'],
  ['/v1/items/a1', 'GET'],
] as const)
  t.test(`gives nothing of the site for any spelling of ${path} without a payment`, async (t) => {
    const spellings = spellingsOf(path)
    t.ok(spellings.length >= 200, `${spellings.length} spellings`)
    const connection = new Connection(server.url)
    const passed: string[] = []
    for (const target of [path, ...spellings])
      for (const each of new Set([method, 'GET', 'POST', 'DELETE'])) {
        const line = `${each} ${target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n`
        const { status } = await connection.ask(Buffer.from(line, 'latin1'), each)
        if (![400, 402, 404, 405].includes(status)) passed.push(`${each} ${target} ${status}`)
      }
    connection.close()
    t.same(passed, [])
    t.same(site.arrived, [])
  })
