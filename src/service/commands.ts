import type { ServiceCommand } from 'ratecard/service'
import type { Settings } from './settings.ts'

const WALLET = { value: '0x…', text: 'address of the wallet' }
const STORED = {
  'data-dir': { value: 'DIR', text: 'data directory of the server; default: DATA_DIR, or else .ratecard' },
  sandbox: { text: 'read the data of "ratecard serve --sandbox"' },
}

export const COMMANDS: readonly ServiceCommand<Settings>[] = [
  {
    name: 'data update',
    summary: 'download the sanctions lists into SANCTIONS_DIR',
    operands: [],
    options: {},
    examples: [
      'ratecard data update',
      'UK_URL=https://sanctionslist.fcdo.gov.uk/docs/UK-Sanctions-List.csv ratecard data update',
    ],
    run: async (call) => (await import('./commands/data.ts')).updateData(call),
  },
  {
    name: 'data status',
    summary: 'show each sanctions list: its date, its size, and whether answers use it',
    operands: [],
    options: { json: { text: 'print JSON' } },
    examples: ['ratecard data status', "ratecard data status --json | jq '.[] | select(.problem)'"],
    run: async (call) => (await import('./commands/data.ts')).dataStatus(call),
  },
  {
    name: 'memory reindex',
    summary: 'embed all memories again after a change of the embedder',
    operands: [],
    options: STORED,
    examples: ['EMBEDDING_MODEL=text-embedding-3-small OPENAI_API_KEY=… ratecard memory reindex'],
    run: async (call) => (await import('./commands/memory.ts')).reindexMemories(call),
  },
  {
    name: 'memory forget',
    summary: 'delete everything a wallet has stored; cannot be undone',
    operands: [],
    options: { wallet: { ...WALLET, text: 'address of the wallet; required' }, ...STORED },
    examples: ['ratecard memory forget --wallet 0x1111111111111111111111111111111111111111'],
    run: async (call) => (await import('./commands/memory.ts')).forgetWallet(call),
  },
  {
    name: 'memory export',
    summary: 'print all memories, or those of one wallet, one JSON object per line',
    operands: [],
    options: { wallet: WALLET, ...STORED },
    examples: ['ratecard memory export > memories.jsonl'],
    run: async (call) => (await import('./commands/memory.ts')).exportMemories(call),
  },
]
