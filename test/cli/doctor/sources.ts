import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import type { Fault } from '../../../src/service/stand-ins/fault.ts'
import { startStandIns } from '../../../src/service/stand-ins/stand-ins.ts'
import { MAIN } from '../../support/server.ts'

const faults: Record<string, Fault> = {}
let isBare = false
const standIns = await startStandIns({
  faults,
  // As if the store no longer said on what its games run.
  spoil: (_address, body) =>
    isBare ? JSON.parse(JSON.stringify(body).replaceAll('"platforms":', '"runs_on":')) : body,
})
t.teardown(() => standIns.stop())

/** Runs the built program against the stand-ins; never rejects. */
async function examine(): Promise<{ readonly code: number; readonly out: string }> {
  const env = {
    PATH: process.env['PATH'] ?? '',
    STEAM_STORE_URL: `${standIns.url}/steam-store`,
    STEAM_API_URL: `${standIns.url}/steam-api`,
    STEAMSPY_URL: `${standIns.url}/steamspy`,
  }
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [MAIN, 'doctor'], { env })
    return { code: 0, out: stdout }
  } catch (fault) {
    if (!(fault instanceof Error && 'code' in fault && 'stdout' in fault)) throw fault
    return { code: Number(fault.code), out: String(fault.stdout) }
  }
}

t.test('shows which routes answer and which wait for credentials', async (t) => {
  const { out } = await examine()
  t.match(out, /^\/paid\/gamestore\/top-sellers +answers$/m)
  t.match(out, /^\/paid\/gamestore\/app\/\{appid\} +answers$/m)
  t.match(out, /^\/paid\/streaming\/hype +not served +not_configured: /m)
  t.match(out, /^Steam storefront +\d+ +0 +0 +0 +unknown$/m)
  t.notMatch(out, /FIELD NOT AS EXPECTED/)
})

t.test('names the source that has changed its format and the field, and exits with 1', async (t) => {
  faults['/IStoreBrowseService/GetItems/v1/'] = 'drift'
  t.teardown(() => {
    delete faults['/IStoreBrowseService/GetItems/v1/']
  })
  const { code, out } = await examine()
  t.equal(code, 1)
  t.match(out, /^Steam Web API +\d+ +\d+ +[1-9]\d* +0 +unknown$/m)
  t.match(out, /^Steam Web API +response: required +[1-9]/m)
})

t.test('shows which fields a source has stopped sending though its routes still answer', async (t) => {
  isBare = true
  t.teardown(() => {
    isBare = false
  })
  const { out } = await examine()
  t.match(out, /^\/paid\/gamestore\/top-sellers +answers$/m)
  t.match(out, /^SOURCE +FIELD NOT AS EXPECTED +TIMES$/m)
  t.match(out, /^Steam Web API +response\/store_items\/#\/platforms: absent +[1-9]/m)
  t.match(out, /^Steam storefront +#\/data\/platforms: absent +[1-9]/m)
})
