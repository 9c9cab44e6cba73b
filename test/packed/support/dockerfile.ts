import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The settings with which a container of the image would start. */
interface Replayed {
  readonly env: Readonly<Record<string, string>>
  /** Run by the container engine; exits with 0 while the container is healthy. */
  readonly healthcheck: readonly string[]
  readonly user: string
  /** CMD. */
  readonly command: readonly string[]
}

/** Folders at the root of the image, which are below another folder here. */
const ROOTS = /(?<![\w./@-])\/(build|app|data|node_modules)\b/g

/**
 * Carries a Dockerfile out without Docker: its files are copied and its commands run below `root`, one after the other as
 * they stand. What only a container has is left out: base images, users and the rights of folders.
 */
export function replay(file: string, context: string, root: string): Replayed {
  const env: Record<string, string> = {}
  let [healthcheck, command, user, folder]: [string[], string[], string, string] = [[], [], 'root', root]
  const moved = (text: string): string => text.replaceAll(ROOTS, (path) => join(root, path))
  const own = `${file}.dockerignore`
  const lines = readFileSync(existsSync(own) ? own : join(context, '.dockerignore'), 'utf8').split('\n')
  const kept = lines.flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []))
  const sent = kept.length > 0 ? kept : readdirSync(context).filter((name) => !lines.includes(name))
  const matching = (pattern: string): string[] => {
    const shape = new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll('*', '.*')}$`)
    return pattern.includes('*') ? sent.filter((name) => shape.test(name)) : [pattern]
  }
  const instructions: Readonly<Record<string, (text: string) => void>> = {
    WORKDIR: (path) => {
      folder = moved(path)
      mkdirSync(folder, { recursive: true })
    },
    COPY: (text) => {
      if (text.startsWith('--from')) return
      const names = text.split(' ').slice(0, -1)
      for (const name of names[0] === '.' ? sent : names.flatMap(matching))
        cpSync(join(context, name), join(folder, name), { recursive: true })
    },
    RUN: (text) => {
      const command = moved(text).replace(/ && chown \S+ \S+/, '')
      execFileSync('sh', ['-c', command], {
        cwd: folder,
        env: { PATH: process.env['PATH'], HOME: process.env['HOME'], npm_config_prefer_offline: 'true' },
        stdio: ['ignore', 'ignore', 'inherit'],
      })
    },
    ENV: (text) => {
      for (const [, name = '', value = ''] of text.matchAll(/(\w+)=(\S+)/g)) env[name] = moved(value)
    },
    HEALTHCHECK: (text) => {
      healthcheck = JSON.parse(text.slice(text.indexOf('['))) as string[]
    },
    USER: (name) => {
      user = name
    },
    CMD: (text) => {
      command = JSON.parse(text) as string[]
    },
  }
  const steps = readFileSync(file, 'utf8')
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
  for (const line of steps) {
    const [, name = '', text = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? []
    instructions[name]?.(text)
  }
  return { env, healthcheck, user, command }
}
