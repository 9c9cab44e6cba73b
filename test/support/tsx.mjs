import { register as registerHooks } from 'node:module'
import { setFlagsFromString } from 'node:v8'
import { register } from 'tsx/esm/api'

// As for the programs that tests start (see `nodeCommand`).
if (process.version.startsWith('v20.')) setFlagsFromString('--interrupt-budget=500000')
// `--import=tsx` leaves worker threads alone; on Node 20 they could not read TypeScript.
register()
registerHooks('./package-modules.mjs', import.meta.url)
