import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { OFAC, openPublisher } from '../../support/service/sanctions-lists.ts'
import { runProgram } from '../../support/server.ts'

/** As long as the real one must be at least, and every name another. */
function longList(day: string, extra = 10_000): string {
  const more = Array.from(
    { length: extra },
    (_, place) =>
      `<sdnEntry><uid>${900_000 + place}</uid><lastName>INVENTED ${place.toString(26)}</lastName><sdnType>Entity</sdnType></sdnEntry>`,
  )
  return OFAC.replace(/<Publish_Date>[^<]*/, `<Publish_Date>${day}`)
    .replace(/<Record_Count>[^<]*/, `<Record_Count>${21 + extra}`)
    .replace('</sdnList>', `${more.join('')}</sdnList>`)
}

const directory = mkdtempSync(join(tmpdir(), 'ratecard-lists-'))
t.teardown(() => rmSync(directory, { recursive: true, force: true }))
const file = join(directory, 'us_ofac_sdn.xml')
const publisher = await openPublisher(t, longList('11/18/2026'))
const env = { SANCTIONS_DIR: directory, OFAC_URL: `${publisher.url}/sdn.xml?token=verysecret` }
const data = (...args: readonly string[]) => runProgram(['data', ...args], env)

t.test('data status exits with 1 and names each missing list before the first update', async (t) => {
  const { code, stdout } = await data('status')
  t.equal(code, 1)
  t.match(stdout, /^us_ofac_sdn\t-\t-\t-\tis not loaded yet$/m)
  t.match(stdout, /^eu_fsf\t.*not configured: set EU_URL/m)
  t.equal(publisher.asked.length, 0)
})

t.test('data update fetches the lists, reports progress on stderr and the result on stdout', async (t) => {
  const { code, stdout, stderr } = await data('update')
  t.equal(code, 0, stderr)
  t.match(stderr, /^us_ofac_sdn: updated$/m)
  t.match(stdout, /^us_ofac_sdn\t2026-11-18\t10021\t0\.0 h\tin use$/m)
  t.equal(readFileSync(file, 'utf8'), longList('11/18/2026'))
  t.notMatch(stdout + stderr, /verysecret/)
})

t.test('keeps the list in use when a download is bad, and exits with the reason', async (t) => {
  for (const [bad, reason] of [
    ['', /the list is empty/],
    [longList('11/19/2026', 8000), /the list holds 8021 entries/],
    [longList('11/17/2026'), /older than the one in use/],
  ] as const) {
    publisher.answer((_, response) => response.end(bad))
    const { code, stderr } = await data('update')
    t.equal(code, 1)
    t.match(stderr, reason)
    t.match(stderr, /What was there before is kept/)
    t.equal(readFileSync(file, 'utf8'), longList('11/18/2026'))
    t.strictSame(readdirSync(directory), ['us_ofac_sdn.xml'])
  }
})

t.test('data status exits with 1 and names the list that is too old', async (t) => {
  const sound = await data('status', '--json')
  t.equal(sound.code, 0)
  t.match(JSON.parse(sound.stdout), [{ id: 'us_ofac_sdn', entries: 10_021, problem: null }])
  const past = Date.now() / 1000 - 73 * 3600
  utimesSync(file, past, past)
  const old = await data('status', '--json')
  t.equal(old.code, 1)
  t.match(JSON.parse(old.stdout), [{ id: 'us_ofac_sdn', problem: /was last read 73 hours ago/ }])
  t.ok(existsSync(file))
})

t.test(
  'writes the addresses of accounts a list names, for the catalog to deny, with the time of the list',
  async (t) => {
    const wallets = join(directory, 'us_ofac_sdn.addresses.txt')
    const [one, two] = [`0x${'aB'.repeat(20)}`, `0x${'12'.repeat(20)}`]
    const ids = [
      ['Digital Currency Address - ETH', one],
      ['Digital Currency Address - USDT', one.toLowerCase()],
      ['Digital Currency Address - ARB', ` ${two} `],
      ['Digital Currency Address - XBT', '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa'],
      ['Passport', `0x${'34'.repeat(20)}`],
    ].map(([type, number]) => `<id><uid>1</uid><idType>${type}</idType><idNumber>${number}</idNumber></id>`)
    const listed = longList('11/20/2026').replace(
      '</sdnList>',
      `<sdnEntry><uid>1</uid><lastName>HOLDER</lastName><sdnType>Entity</sdnType><idList>${ids.join('')}</idList></sdnEntry></sdnList>`,
    )
    publisher.answer((_, response) => response.end(listed))
    await data('update')
    t.equal(
      readFileSync(wallets, 'utf8'),
      `# digital currency addresses of us_ofac_sdn\n${two}\n${one.toLowerCase()}\n`,
    )
    utimesSync(wallets, 0, 0)
    await data('update')
    const list = join(directory, 'us_ofac_sdn.xml')
    t.equal(statSync(wallets).mtimeMs, statSync(list).mtimeMs)
    publisher.answer((_, response) => response.end(longList('11/21/2026')))
    await data('update')
    t.notOk(existsSync(wallets), 'a list that names none leaves no old file')
  },
)
