import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { prepareCatalogs } from './catalogs.mjs'
import { measureUnpaid } from './unpaid.mjs'
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
const folder = mkdtempSync(join(tmpdir(), 'rb-'))
try {
  await measureUnpaid({ catalogs: prepareCatalogs(folder), rounds: 5, seconds: 2, warmUp: 3 })
} finally {
  rmSync(folder, { recursive: true, force: true })
}
