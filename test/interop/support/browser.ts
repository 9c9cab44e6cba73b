import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { chromium, type Browser } from 'playwright-core'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']

/** The system’s Chromium; undefined when there is none. */
export function findBrowser(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find((file) => existsSync(file))
}

/** `--no-sandbox`: as root, as in a container, Chromium does not start with it, and the pages are our own. */
export function openBrowser(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, args: ['--no-sandbox'] })
}
