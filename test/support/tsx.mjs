import { register as registerHooks } from 'node:module'
import { register } from 'tsx/esm/api'

// `--import=tsx` leaves worker threads alone; on Node 20 they could not read TypeScript.
register()
registerHooks('./package-modules.mjs', import.meta.url)
