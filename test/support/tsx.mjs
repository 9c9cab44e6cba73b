import { readFileSync } from 'node:fs'
import { register as registerHooks } from 'node:module'
import { setFlagsFromString } from 'node:v8'
import { isMainThread } from 'node:worker_threads'
import { register } from 'tsx/esm/api'
import { endDescendantsWithThis } from './process-end.mjs'

// As for the programs that tests start (see `nodeCommand`).
if (process.version.startsWith('v20.')) setFlagsFromString('--interrupt-budget=500000')
// `--import=tsx` leaves worker threads alone; on Node 20 they could not read TypeScript.
register()
registerHooks('./package-modules.mjs', import.meta.url)

if (isMainThread) {
  // The runner sets it from the same settings. Without it, tap would end a file after 30 seconds.
  process.env['TAP_TIMEOUT'] ??= String(settings().tap.timeout)
  endDescendantsWithThis()
}

function settings() {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
}
