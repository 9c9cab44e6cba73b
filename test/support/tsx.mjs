import { register } from 'tsx/esm/api'

// `--import=tsx` leaves worker threads alone; on Node 20 they could not read TypeScript.
register()
