#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { openTerminal } from '../command-line/process-terminal.ts'
import { readEnvFile } from '../env/env-file.ts'
import { runBuyer } from './program.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

process.exitCode = await runBuyer({
  argv: process.argv.slice(2),
  variables: { ...readEnvFile('.env'), ...process.env },
  terminal: openTerminal(process),
  version: String(version),
})
