/* A sparse matrix in coordinates made dense; entries that occur more than once add up.
 * cudaperf: index row[nnz] in 0..rows-1; index col[nnz] in 0..cols-1; in val[nnz]; out dense[rows*cols]
 * cudaperf: rows in 1..; cols in 1.. */
void coo_dense(int rows, int cols, int nnz, const int *row, const int *col, const float *val, float *dense)
{
    for (int i = 0; i < rows * cols; i++)
        dense[i] = 0.0f;
    for (int e = 0; e < nnz; e++)
        dense[row[e] * cols + col[e]] += val[e];
}
