/** Puts `ratecard-buyer` and everything it needs into src/buyer/dist: the package has no dependencies. */
import { chmodSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { OPTIONS } from './esbuild-options.mjs'
import { describeBundle } from './packages.mjs'

const BUYER = join(import.meta.dirname, '../src/buyer')
const directory = join(BUYER, 'dist')

rmSync(directory, { recursive: true, force: true })
const { metafile } = await build({ ...OPTIONS, entryPoints: [join(BUYER, 'main.ts')], outdir: directory })
describeBundle(metafile, { directory, manifest: 'src/buyer/package.json' })
chmodSync(join(directory, 'main.js'), 0o755)
