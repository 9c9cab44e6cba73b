/** Spellings of one name in Latin letters: the first stands for all. Only those that sound alike and are one name. */
const SPELLINGS: readonly string[] = [
  'muhammad mohammed mohamed mohammad muhammed mohamad muhamad mohamet mahomed',
  'ahmad ahmed achmed ahmet',
  'mahmud mahmoud mahmood mehmood',
  'husayn hussein hussain husain hossein hosein hussien',
  'hasan hassan',
  'yusuf youssef yousef yusef yousuf youssouf yousif',
  'usama osama oussama ussama',
  'ladin laden',
  'umar omar',
  'uthman osman othman',
  'abdallah abdullah abdulla abdellah abdoullah',
  'qasim qasem ghasem ghasim kassem kasem qassem qassim kasim',
  'sulayman sulaiman suleiman suleyman soleiman soleyman',
  'sulaymani soleimani soleymani suleimani suleymani',
  'khalid khaled',
  'ibrahim ebrahim ibraheem',
  'ayman aiman',
  'zawahiri zawahri zawaheri',
  'mustafa mostafa moustafa mustapha',
  'said saeed saied sayeed',
  'rahman rehman rahmaan',
  'assad asad',
  'qaida qaeda qaidah qaedah kaida',
  'hizballah hezbollah hizbullah hizbollah hezballah hezbullah',
  'taliban taleban',
  'yevgeniy evgeny evgeniy yevgeny evgeni yevgeni evgenii yevgenii',
  'dmitriy dmitry dmitri dimitri dmitrii',
  'sergey sergei serguei sergej',
  'aleksandr alexander alexandr aleksander oleksandr',
  'aleksey alexey alexei aleksei oleksiy',
  'nikolay nikolai nicolai nikolaj',
  'nicolas nicholas nikolas nickolas nicolaus',
  'andrey andrei andrej',
  'yuriy yury yuri iurii',
  'viktor victor',
  'vladimir volodymyr wladimir',
  'mikhail michail mihail',
  'grigoriy grigory grigori',
  'joaquin joaquim',
]

const ONE_FOR_ALL: ReadonlyMap<string, string> = new Map(
  SPELLINGS.flatMap((line) => {
    const [first = '', ...others] = line.split(' ')
    return others.map((other) => [other, first] as const)
  }),
)

/** One spelling for all of a name: `mohamed` is `muhammad`, `abdelkader` is `abdulkader`. */
export function respell(word: string): string {
  return ONE_FOR_ALL.get(word) ?? word.replace(/^abd[aeo]l(?=.)|^abd[aeo]l$/, 'abdul')
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '))

/** The surname 이 alone has no consonant to tell it by. */
const SURNAME_RI = 'i'

/**
 * A Korean syllable, transliterated letter by letter, as lists spell it in names: `gim` is `kim`, `jeong` is `jong`, `eun`
 * is `un`, `bag` is `pak`.
 */
export function asListed(syllable: string): string {
  const lower = syllable.toLowerCase()
  if (lower === SURNAME_RI) return 'ri'
  return lower
    .replace(/^g(?!g)/, 'k')
    .replace(/^b(?!b)/, 'p')
    .replace(/^l/, 'r')
    .replace(/(?<!n)g$/, 'k')
    .replace(/b$/, 'p')
    .replace('eo', 'o')
    .replace('eu', 'u')
}

/** Said to a person, not part of the name. */
export const HONORIFICS = words(
  'mr mrs ms miss dr prof professor sir sheikh shaykh sheik shaikh haji hajji hajj mullah mulla maulana maulavi mawlawi general gen colonel col major captain capt ayatollah sayyid president minister jr sr',
)

/** What a company is by law, and words that join others: two companies are not alike for having them in common. */
export const LEGAL_FORMS = words(
  'co ltd limited llc llp inc incorporated corp corporation company gmbh ag kg sa sarl srl spa bv nv oy ab as plc jsc ojsc pjsc cjsc zao oao ooo pao fze fzco fzc dmcc est the of and for a group holding holdings international general trading',
)

/** Words that many organisations have in their names: left out by a caller, they tell little. */
export const GENERIC = words(
  'private military organization organisation network front bank air airlines airways shipping lines national islamic foundation party brigade brigades army forces force union center centre committee movement council ministry republic democratic popular people state industries industry services service institute university charity trust society central',
)

/** Joins names together and is left out as often as it is written. */
export const PARTICLES = words(
  'al el ul la le les de del della di da do dos das du der den van von bin ibn ben bint y e',
)
