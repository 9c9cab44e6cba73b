#!/usr/bin/env node
import { check } from './cli/check.ts'
import type { Command } from './cli/command.ts'
import { runCommand } from './cli/run.ts'
import { documentNames } from './engine/index.ts'
import { readEnv } from './env.ts'

const commands: readonly Command[] = [check]

process.exitCode = await runCommand({
  commands,
  argv: process.argv.slice(2),
  env: () => readEnv(process.env),
  terminal: {
    out: (line) => process.stdout.write(`${line}\n`),
    err: (line) => process.stderr.write(`${line}\n`),
  },
  known: {
    handlers: [
      'ping',
      'util/workday',
      'util/tokencost',
      'util/mock',
      'util/json',
      'util/finid',
      'gamestore/top-sellers',
    ],
    documents: documentNames,
  },
})
