// mongoose: models with schemas, indexes, validation, population and queries as an application writes them.
import mongoose from 'mongoose';
import { isDeepStrictEqual, inspect } from 'node:util';

let failed = 0;
const check = (name, got, want) => {
  if (isDeepStrictEqual(got, want)) return;
  failed++;
  console.log(`FAILED ${name}: got ${inspect(got)}, want ${inspect(want)}`);
};

const authorSchema = new mongoose.Schema({ name: { type: String, required: true, unique: true }, born: Date });
const bookSchema = new mongoose.Schema({
  title: { type: String, required: true, index: true },
  author: { type: mongoose.Schema.Types.ObjectId, ref: 'Author' },
  pages: { type: Number, min: 1 },
  tags: [String],
  reviews: [{ by: String, stars: Number }],
  price: mongoose.Schema.Types.Decimal128,
}, { timestamps: true });
bookSchema.index({ author: 1, pages: -1 });
bookSchema.virtual('long').get(function () { return this.pages > 400; });

async function scenario(prefix, connection) {
  const Author = connection.model('Author', authorSchema, `${prefix}_authors`);
  const Book = connection.model('Book', bookSchema, `${prefix}_books`);
  await Author.init();
  await Book.init();
  const [ann, bob] = await Author.create([{ name: 'Ann', born: new Date('1970-01-02') }, { name: 'Bob' }]);
  const duplicate = await Author.create({ name: 'Ann' }).catch((error) => error);
  check('unique', duplicate.code, 11000);
  const invalid = await Book.create({ pages: 0 }).catch((error) => Object.keys(error.errors).sort());
  check('validation', invalid, ['pages', 'title']);
  await Book.insertMany([
    { title: 'One', author: ann, pages: 100, tags: ['a'], price: '9.90' },
    { title: 'Two', author: ann, pages: 500, tags: ['a', 'b'], price: '19.90' },
    { title: 'Three', author: bob, pages: 300, tags: ['c'] },
  ]);
  const books = await Book.find({ pages: { $gte: 200 } }).sort('-pages').populate('author').exec();
  check('populate', books.map((book) => [book.title, book.author.name, book.long]), [['Two', 'Ann', true], ['Three', 'Bob', false]]);
  check('lean and select', await Book.find({ tags: 'a' }).select('title -_id').sort('title').lean(), [{ title: 'One' }, { title: 'Two' }]);
  const two = await Book.findOne({ title: 'Two' });
  two.reviews.push({ by: 'x', stars: 4 }, { by: 'y', stars: 2 });
  two.tags.pull('a');
  await two.save();
  const again = await Book.findById(two._id);
  check('subdocuments', [again.reviews.map((review) => review.stars), [...again.tags], again.__v > 0], [[4, 2], ['b'], true]);
  check('timestamps', again.updatedAt > again.createdAt, true);
  const updated = await Book.findOneAndUpdate({ _id: two._id, 'reviews.by': 'y' }, { $inc: { 'reviews.$.stars': 3 } }, { returnDocument: 'after' });
  check('findOneAndUpdate', updated.reviews[1].stars, 5);
  const stale = await Book.findById(two._id);
  await Book.updateOne({ _id: two._id }, { $pull: { reviews: { by: 'x' } }, $inc: { __v: 1 } });
  stale.reviews.set(0, { by: 'z', stars: 1 });
  const conflict = await stale.save().catch((error) => error.name);
  check('version conflict', conflict, 'VersionError');
  const stats = await Book.aggregate([{ $unwind: '$tags' }, { $group: { _id: '$tags', books: { $sum: 1 }, pages: { $avg: '$pages' } } }, { $sort: { _id: 1 } }]);
  check('aggregate', stats, [{ _id: 'a', books: 1, pages: 100 }, { _id: 'b', books: 1, pages: 500 }, { _id: 'c', books: 1, pages: 300 }]);
  const joined = await Author.aggregate([{ $lookup: { from: `${prefix}_books`, localField: '_id', foreignField: 'author', as: 'books' } },
    { $project: { _id: 0, name: 1, n: { $size: '$books' } } }, { $sort: { name: 1 } }]);
  check('lookup', joined, [{ name: 'Ann', n: 2 }, { name: 'Bob', n: 1 }]);
  const bulk = await Book.bulkWrite([{ updateMany: { filter: {}, update: { $set: { seen: 1 } } } }, { deleteOne: { filter: { title: 'One' } } }], { strict: false });
  check('bulkWrite', bulk.deletedCount, 1);
  const titles = [];
  for await (const book of Book.find().sort({ title: 1 }).cursor({ batchSize: 1 })) titles.push(book.title);
  check('cursor', titles, ['Three', 'Two']);
  check('count and exists', [await Book.countDocuments(), (await Book.exists({ title: 'Two' })) !== null], [2, true]);
  check('syncIndexes', await Book.syncIndexes(), []);
  check('distinct', await Book.distinct('tags').then((tags) => tags.sort()), ['b', 'c']);
  connection.deleteModel(/Author|Book/);
}

const connection = await mongoose.createConnection(`${process.argv[2]}/drivers_mongoose`, { serverSelectionTimeoutMS: 10000 }).asPromise();
try {
  await connection.dropDatabase();
  await scenario('plain', connection);
  const admin = connection.getClient().db('admin');
  await admin.command({ shardCollection: 'drivers_mongoose.sharded_books', key: { _id: 'hashed' } });
  await admin.command({ shardCollection: 'drivers_mongoose.sharded_authors', key: { name: 1 }, unique: true });
  await scenario('sharded', connection);
  await connection.dropDatabase();
} catch (error) {
  failed++;
  console.log(error);
}
await connection.close();
console.log(failed ? `${failed} failed` : 'all passed');
process.exit(failed ? 1 : 0);
