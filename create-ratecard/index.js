#!/usr/bin/env node
// `npm create ratecard my-shop -- --typescript` is `ratecard init my-shop --typescript`.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const ratecard = fileURLToPath(new URL('../main.js', import.meta.resolve('ratecard')))
const { status } = spawnSync(process.execPath, [ratecard, 'init', ...process.argv.slice(2)], {
  stdio: 'inherit',
})
process.exitCode = status ?? 1
